"""Check that names and prose use the field's words.

``python -m tools.words`` reads the source, its templates, the docs, the examples and
the README, and exits with 1 where a word is used that readers would have to learn. What
to write instead is printed beside it. ``tools/words.toml`` lists the lines that may
keep such a word, each with its reason; an entry that no line needs is an error too.
"""

from __future__ import annotations

import re
import sys
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass, field
from fnmatch import fnmatch
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[1]
EXCEPTIONS = ROOT / "tools" / "words.toml"
READ = (
    ("src", "*.py"),
    ("src", "*.html"),
    ("src", "*.md"),
    ("docs", "*.md"),
    ("examples", "*.py"),
    (".", "README.md"),
    (".", "CONTRIBUTING.md"),
)
# written by a command, or history
NOT_READ = ("docs/_build", "docs/api", "docs/gallery", "docs/changes.md")

# Each expression is matched against words in lower case, with identifiers split at
# underscores and capitals
WORDS = {
    r"tells?|told|telling": "release, publish, report, show",
    r"shorten\w*": "clip",
    r"cut rows?|cut to|slopes? (?:is|are) cut": "clip",
    r"slopes?": "derivative, gradient",
    r"promis\w*": "guarantee",
    r"made up": "synthetic",
    r"whole numbers?": "integer",
    r"(?<!standard )(?<!absolute )deviations?": "standard deviation, std, error",
    r"places?": "index, position",
    r"refus\w*": "reject, check, require",
    r"asked|asking": "query, request",
    r"walk\w*": "pass, iteration",
    r"on the disks?": "on disk, saved",
    r"(?:go|goes|going|gone|went) on with": "resume, continue",
    r"stray\w*": "invalid, unexpected",
    r"known mistakes?": "mutation, planted bug",
    r"held(?! out)": "stored, in memory",
    r"laws?": "distribution",
    r"(?:privacy|budget) shares?|share of (?:the|its|a) budget": "fraction",
    r"what (?:is|are) none": "invalid",
}
EXPRESSIONS = {
    re.compile(rf"(?<![a-z])(?:{words})(?![a-z])"): instead
    for words, instead in WORDS.items()
}


class Use(NamedTuple):
    """A word in a line of a file."""

    file: str
    line: int
    text: str
    word: str
    instead: str


@dataclass
class Kept:
    """Lines of some files that may hold a word, and why."""

    word: str
    why: str
    files: tuple[str, ...] = ("*",)
    line: str = ""
    used: bool = field(default=False, init=False)

    def covers(self, use: Use) -> bool:
        """Return whether a use is one of these, and note that the entry is needed."""
        here = any(fnmatch(use.file, pattern) for pattern in self.files)
        found = re.fullmatch(self.word, use.word) and re.search(self.line, use.text)
        self.used |= bool(here and found)
        return bool(here and found)


def plain(line: str) -> str:
    """Return a line in lower case, with identifiers split into words.

    A hyphen and an underscore are spaces; ``"`` and the like stay.
    """
    split = re.sub(r"(?<=[a-z0-9])(?=[A-Z])|_|-", " ", line)
    return re.sub(r" +", " ", split).lower()


def uses(text: str, file: str) -> Iterator[Use]:
    """Yield every word of a text that has a better one."""
    before = ""
    for number, line in enumerate(text.splitlines(), 1):
        # a term may be wrapped, as "standard deviation" after its first word
        *_, last = ["", *before.split()]
        before = plain(line).strip()
        spoken = f"{last} {before}"
        for expression, instead in EXPRESSIONS.items():
            for match in expression.finditer(spoken):
                if match.start() <= len(last):
                    continue
                yield Use(file, number, line.strip(), match.group(), instead)


def files() -> list[Path]:
    """Return the files whose words are checked."""
    found = {
        path
        for folder, pattern in READ
        for path in (
            (ROOT / folder).rglob(pattern) if folder != "." else [ROOT / pattern]
        )
    }
    return sorted(
        path
        for path in found
        if not path.relative_to(ROOT).as_posix().startswith(NOT_READ)
    )


def main() -> int:
    """Print every word to replace; return 1 where there is one."""
    listed = tomllib.loads(EXCEPTIONS.read_text("utf-8"))["exception"]
    exceptions = [
        Kept(entry["word"], entry["why"], tuple(entry["files"]), entry.get("line", ""))
        for entry in listed
    ]
    left = [
        use
        for path in files()
        for use in uses(path.read_text("utf-8"), path.relative_to(ROOT).as_posix())
        if not any(entry.covers(use) for entry in exceptions)
    ]
    for use in left:
        print(f"{use.file}:{use.line}: '{use.word}' -> {use.instead}: {use.text}")
    stale = [entry for entry in exceptions if not entry.used]
    for entry in stale:
        print(f"{EXCEPTIONS.name}: no line needs the exception for {entry.word!r}")
    return 1 if left or stale else 0


if __name__ == "__main__":
    sys.exit(main())
