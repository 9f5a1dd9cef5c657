"""The page in a real browser: it renders, is quiet, loads nothing and prints."""

import html
import json
import shutil
import subprocess
from urllib.parse import urlsplit

import numpy as np
import pytest
from PIL import Image
from tests.reports.examples import facts

from tacit.reports import report_html

CHROMIUM = shutil.which("chromium")
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="chromium is not installed")

QUIET = [
    *("--headless", "--no-sandbox", "--disable-gpu", "--disable-background-networking"),
    *("--disable-component-update", "--disable-sync", "--no-first-run"),
    *("--disable-default-apps", "--hide-scrollbars"),
]

WIDTHS = (360, 760, 1440)


def browse(folder, page, *options):
    """Open a page and return what the browser wrote, and its log."""
    position = folder / "page.html"
    position.write_text(page, encoding="utf-8")
    return subprocess.run(
        [CHROMIUM, *QUIET, f"--user-data-dir={folder / 'profile'}", *options,
         position.as_uri()],
        capture_output=True, text=True, timeout=60, check=True,
    )  # fmt: skip


def watched(folder, page):
    """Return the document, lines of the console, and addresses asked for."""
    log = folder / "net.json"
    shown = browse(
        folder,
        page,
        "--dump-dom",
        "--enable-logging=stderr",
        "--v=0",
        f"--log-net-log={log}",
    )
    console = [line for line in shown.stderr.splitlines() if "CONSOLE" in line]
    events = json.loads(log.read_text("utf-8"))["events"]
    asked = {event.get("params", {}).get("url", "") for event in events}
    return shown.stdout, console, {url for url in asked if url and not is_own(url)}


def is_own(url):
    """Whether the browser asks for this by itself, whatever page is open."""
    host = urlsplit(url).hostname or ""
    return host.endswith(("google.com", "googleapis.com", "gvt1.com"))


@pytest.fixture(scope="module")
def page():
    return report_html(facts())


def test_the_page_renders_without_console_messages(tmp_path, page):
    document, console, asked = watched(tmp_path, page)
    assert document.count("<svg") == 8
    assert "How to verify" in document
    assert console == []
    assert asked == set()


def test_an_error_and_a_load_would_be_seen(tmp_path):
    noisy = (
        "<script>console.error('shown')</script>"
        "<img src='http://page-asks.invalid/x.png'>"
    )
    _, console, asked = watched(tmp_path, noisy)
    assert any("shown" in line for line in console)
    assert asked == {"http://page-asks.invalid/x.png"}


def test_the_policy_of_the_page_forbids_scripts_and_loads(tmp_path, page):
    noisy = page.replace(
        "<footer",
        "<script>document.title = 'broken'</script>"
        "<img src='http://page-asks.invalid/x.png'><footer",
    )
    document, console, asked = watched(tmp_path, noisy)
    assert "<title>broken" not in document
    assert any("Content Security Policy" in line for line in console)
    assert asked == set()


def test_the_page_fits_a_phone_and_a_desktop(tmp_path, page):
    # a copy without the policy, in frames that a script measures
    policy = page[page.index("<meta http-equiv") :].split("\n", 1)[0]
    inside = html.escape(page.replace(policy, ""))
    frames = "".join(
        f'<iframe width="{width}" height="800" style="border:0" srcdoc="{inside}">'
        "</iframe>"
        for width in WIDTHS
    )
    script = (
        "onload = () => document.title = [...document.querySelectorAll('iframe')]"
        ".map(f => f.contentDocument.documentElement.scrollWidth).join()"
    )
    outer = f"<!doctype html><title>-</title>{frames}<script>{script}</script>"
    shown = browse(tmp_path, outer, "--dump-dom").stdout
    assert f"<title>{','.join(map(str, WIDTHS))}</title>" in shown


def test_the_page_is_neither_blank_nor_black(tmp_path, page):
    shot = tmp_path / "shot.png"
    browse(tmp_path, page, f"--screenshot={shot}", "--window-size=360,900")
    pixels = np.asarray(Image.open(shot).convert("L"))
    assert pixels.shape == (900, 360)
    assert 0.01 < np.mean(pixels < 128) < 0.5


def test_the_dark_page_is_dark(tmp_path, page):
    shot = tmp_path / "shot.png"
    dark = "--blink-settings=preferredColorScheme=0"
    browse(tmp_path, page, f"--screenshot={shot}", "--window-size=800,900", dark)
    pixels = np.asarray(Image.open(shot).convert("L"))
    assert np.median(pixels) < 50
    assert pixels.max() > 200


def test_the_page_prints(tmp_path, page):
    paper = tmp_path / "page.pdf"
    browse(tmp_path, page, f"--print-to-pdf={paper}", "--no-pdf-header-footer")
    content = paper.read_bytes()
    assert content.startswith(b"%PDF")
    assert content.count(b"/Type /Page\n") >= 3
