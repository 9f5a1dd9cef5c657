"""Names that try to be markup stay text, wherever they stand."""

from itertools import cycle

import pytest
from markdown_it import MarkdownIt
from tests.reports.examples import facts, ledger, privacy
from tests.reports.skeleton import Skeleton

from tacit.reports import card_html, card_markdown, report_html
from tacit.reports._charts import coefficient_chart
from tacit.reports._format import markdown_text

HOSTILE = [
    "<script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    "</style></title></textarea><svg onload=alert(1)>",
    "{{ 7 * 7 }}{% for %}",
    "a|b`c`\n# d\n\n<b>e</b>",
    "](javascript:alert(1)) ![x](http://example.org/x.png)",
    "http://example.org www.example.org a@example.org",
    "\x00\x1b[31m\u202e",
    "&lt;script&gt;",
    "*a* _b_ ~~c~~ $d$ \\",
    "' or names[0] + datum.value",
]


def poisoned(*texts):
    """Facts in which every text that people choose is one of ``texts``, in turn."""
    turn = cycle(texts)
    account = ledger()
    account["dataset"] = next(turn)
    for record in account["records"]:
        # the same writer throughout: one more would be one more row of a table
        record |= {"who": texts[0], "analyst": texts[-1], "label": next(turn)}
        record |= {"reason": next(turn), "hash": next(turn)}
        record |= {"refers_to": next(turn)}
    account["assumptions"] = [next(turn)]
    account["as_of"] = next(turn)
    report = privacy(label=next(turn))
    report["assumptions"] = [next(turn), next(turn)]
    report["notes"] = [next(turn)]
    base = facts()
    extra = privacy(label=next(turn))
    return base | {
        "releases": [report, extra],
        "title": next(turn),
        "created": next(turn),
        "tacit": next(turn),
        "estimator": next(turn),
        "parameters": {next(turn): next(turn), "classes": [next(turn)]},
        "dataset": next(turn),
        "privacy": report,
        "features": [next(turn) for _ in base["features"]],
        "classes": [next(turn), next(turn)],
        "noise": base["noise"] | {"how": next(turn), "covers": next(turn)},
        "score": base["score"] | {"measure": next(turn), "rows": next(turn)},
        "ledger": account,
        "schema": {
            "note": next(turn),
            "target": {"name": next(turn)},
            "columns": {next(turn): {next(turn): next(turn), "categories": [texts[0]]}},
        },
    }


@pytest.mark.parametrize("first", [0, 4, 8])
def test_a_report_has_the_same_skeleton_whatever_the_names(first):
    seen = Skeleton(report_html(poisoned(*HOSTILE[first:], *HOSTILE[:first])))
    assert seen.parts == Skeleton(report_html(poisoned("plain"))).parts
    assert all(link.startswith("#") for link in seen.links)
    assert "{{ 7 * 7 }}" in "".join(seen.text)  # no template in a template


def test_the_skeleton_would_show_an_injection():
    assert Skeleton("<p><b onclick='x'>a</b></p>").parts != Skeleton("<p>a</p>").parts


@pytest.mark.parametrize("text", HOSTILE)
def test_an_html_card_has_the_same_skeleton_whatever_the_names(text):
    harmless = Skeleton(card_html(poisoned("plain"))).parts
    assert Skeleton(card_html(poisoned(text))).parts == harmless


def shape(markdown):
    """Kinds of tokens of a page, in order, runs of text as one."""
    reader = MarkdownIt("commonmark", {"html": True}).enable(["table", "strikethrough"])
    kinds = []
    for token in reader.parse(markdown):
        kinds.append(token.type)
        for child in token.children or ():
            if child.type not in ("text", "softbreak", "text_special"):
                kinds.append(child.type)
    return kinds


@pytest.mark.parametrize("text", HOSTILE)
def test_a_markdown_card_has_the_same_shape_whatever_the_names(text):
    assert shape(card_markdown(poisoned(text))) == shape(card_markdown(poisoned("x")))


@pytest.mark.parametrize("text", HOSTILE)
def test_escaped_markdown_shows_the_text_itself(text):
    shown = markdown_text(text)
    reader = MarkdownIt("commonmark", {"html": True}).enable(["table", "strikethrough"])
    for position in (f"{shown}", f"* {shown}", f"# {shown}"):
        tokens = [t for t in reader.parse(position) if t.type == "inline"]
        assert len(tokens) == 1
        assert {c.type for c in tokens[0].children} <= {"text", "text_special"}
    # what makes a link of bare text elsewhere is broken up
    assert "http:" not in shown
    assert "www." not in shown
    assert "e@e" not in shown
    assert "a@" not in shown


@pytest.mark.parametrize(
    "text",
    ["16:37 UTC", "high_income=yes (no)", "don't: a + b", 'the "best"! ^', "C-3"],
)
def test_text_that_means_nothing_to_markdown_stays_as_it_is(text):
    assert markdown_text(text) == text


@pytest.mark.parametrize("text", ["1. a", "1) a", "- a", "+ a", "12. a", "=== a"])
def test_no_text_begins_a_list_or_a_heading(text):
    assert shape(f"a\n\n{markdown_text(text)}") == shape("a\n\nb")


def test_texts_of_a_chart_are_escaped():
    name = '"><script>x()</script>&'
    rows = [{"name": name, "value": 1.0, "low": None, "high": None}]
    shown = str(coefficient_chart(rows, 720, title=name).svg("n", name, name))
    assert "<script" not in shown
    assert shown.count("&lt;script&gt;x()") == 4
    assert "width=" not in shown.split(">", 1)[0]
