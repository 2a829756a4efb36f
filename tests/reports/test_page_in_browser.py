"""The report page in a browser, at the width of a desktop and of a phone: no overflow.

The page has no script, and allows none. To measure it, a copy gets one, without the
rule that forbids it; and it is a frame in another page, as a window has 500 px at least.
"""

from __future__ import annotations

import html
import json
import re
import shutil
import subprocess
from typing import TYPE_CHECKING

import pytest
from example_reports import nightly_run, short_run

from litmusfuzz.reports.html import page

if TYPE_CHECKING:
    from pathlib import Path

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser"))), None)
MEASURE = """<script>
for (const each of document.querySelectorAll("details")) each.open = true;
const inner = (e) => e.parentElement.closest(".scroll, pre, .defs");
const right = (e) => e.getBoundingClientRect().right;
// Neither of the page nor, within a finding, of its frame.
const limit = (e) => Math.min(innerWidth, right(e.closest(".finding") || document.body));
const out = [...document.querySelectorAll("body *")].filter(
  (e) => !inner(e) && right(e) > limit(e) + 0.5);
parent.document.title = JSON.stringify({
  inner: innerWidth, scroll: document.documentElement.scrollWidth,
  out: out.slice(0, 5).map((e) => e.tagName + "." + e.className),
  dark: getComputedStyle(document.body).backgroundColor,
});
</script></body>"""

pytestmark = pytest.mark.skipif(
    CHROMIUM is None, reason="no Chromium here: apt-get install chromium"
)


def browse(path: Path, width: int, *more: str) -> subprocess.CompletedProcess[str]:
    """Load a page, and print its document as it then is; the console goes to stderr."""
    assert CHROMIUM is not None
    user_data = path.parent / f"browser-{width}"
    return subprocess.run(
        [
            *(CHROMIUM, "--headless", "--no-sandbox", "--disable-gpu", "--enable-logging=stderr"),
            "--hide-scrollbars",
            *(f"--user-data-dir={user_data}", f"--window-size={width},900"),
            # The clock runs as fast as the page lets it: nothing here waits for time.
            *("--virtual-time-budget=2000", *more, "--dump-dom", path.as_uri()),
        ],
        check=True,
        capture_output=True,
        text=True,
    )


def test_the_browser_has_nothing_to_complain_of(tmp_path: Path) -> None:
    path = tmp_path / "report.html"
    path.write_text(page(nightly_run(12)), encoding="utf-8")
    done = browse(path, 1280)
    assert "CONSOLE" not in done.stderr
    # It sees what we wrote, each finding included.
    assert done.stdout.count('<svg class="graph"') == 14
    # And would complain if there were a reason.
    text = path.read_text(encoding="utf-8")
    path.write_text(text.replace("</body>", "<script>f()</script></body>"), encoding="utf-8")
    assert "CONSOLE" in browse(path, 1280).stderr


@pytest.mark.parametrize(
    ("width", "scheme", "length"),
    [
        (1280, "light", "nightly"),
        (390, "light", "nightly"),
        (390, "dark", "nightly"),
        (390, "light", "short"),
    ],
    ids=str,
)
def test_no_element_overflows_the_page(
    tmp_path: Path, width: int, scheme: str, length: str
) -> None:
    """With everything expanded, at the width of a desk's screen and of a phone."""
    whole = page(nightly_run(40) if length == "nightly" else short_run(4))
    measured = re.sub(r'<meta http-equiv="Content-Security-Policy"[^>]*>', "", whole)
    path = tmp_path / "report.html"
    frame = html.escape(measured.replace("</body>", MEASURE))
    frame = f'<iframe style="border: 0; width: {width}px; height: 800px" srcdoc="{frame}"></iframe>'
    path.write_text(f"<!DOCTYPE html><title></title>{frame}", encoding="utf-8")
    dark = ("--blink-settings=preferredColorScheme=0",) if scheme == "dark" else ()
    done = browse(path, 1600, *dark)
    title = re.search(r"<title>(.*?)</title>", done.stdout)
    assert title is not None
    output = json.loads(html.unescape(title[1]))
    assert output["inner"] == width
    assert output["out"] == []
    assert output["scroll"] == width
    assert (output["dark"] == "rgb(255, 255, 255)") == (scheme == "light")
