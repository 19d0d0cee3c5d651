"""The pictures of the README: `python -m tests.pictures` writes docs/demo.svg and docs/report.png from a run of the demo.

`python -m tests.pictures REPORT.html FOLDER` shows a report as people see it, to be looked at after each change of the
page: light, dark, on a phone and on paper, each as one PNG.
"""

import base64
import re
import sys
import tempfile
import time
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path

from rich.console import Console

from gbfl_compile.cli import main
from tests.reporting.browser import chromium, show

DOCS = Path(__file__).parents[1] / "docs"
CHAPTERS = ("4  ", "7  ")
"""The terminal's picture begins at the one and ends at the other."""
WIDTH, HEIGHT = 1200, 900
FONT_FACE = re.compile(r"@font-face \{[^}]*\}")
"""A font from the network: a picture loads nothing, and uses the reader's own monospaced font."""


def terminal(text: str) -> str:
    """The chapters on targets, the database and the forgery, as a drawing of a terminal."""
    lines = text.split("\n")
    first, last = (next(place for place, line in enumerate(lines) if line.startswith(start)) for start in CHAPTERS)
    console = Console(record=True, width=82, file=StringIO(), highlight=False)
    for line in lines[first:last]:
        bold = line[:1].isdigit() or "CAUGHT" in line
        console.print(line, style="bold" if bold else "", markup=False)
    return FONT_FACE.sub("", console.export_svg(title="make demo"))


def draw() -> None:
    """Run the demo, and draw what it printed and the page that it wrote."""
    with tempfile.TemporaryDirectory() as folder:
        out, printed = Path(folder) / "demo-out", StringIO()
        with redirect_stdout(printed):
            assert main(["demo", "--out", str(out)]) == 0
        (DOCS / "demo.svg").write_text(terminal(printed.getvalue().replace(f"{folder}/", "")), encoding="utf-8")
        with chromium(Path(folder) / "profile") as browser:
            show(browser, out / "report.html", WIDTH)
            time.sleep(0.5)
            top = browser.execute_script("return document.getElementById('try').getBoundingClientRect().top + scrollY")
            clip = {"x": 0, "y": top, "width": WIDTH, "height": HEIGHT, "scale": 0.75}
            shot = {"format": "png", "captureBeyondViewport": True, "clip": clip}
            picture = browser.execute_cdp_cmd("Page.captureScreenshot", shot)["data"]
        (DOCS / "report.png").write_bytes(base64.b64decode(picture))


LOOKS = {
    "light": (1200, "light", "screen"),
    "dark": (1200, "dark", "screen"),
    "phone": (390, "light", "screen"),
    "print": (800, "light", "print"),
}
"""Width, colour scheme and medium of each picture."""


def draw_looks(page: Path, folder: Path) -> None:
    """The whole page in every way it is looked at."""
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as profile, chromium(profile) as browser:
        for look, (width, scheme, medium) in LOOKS.items():
            show(browser, page.resolve(), width, scheme, medium)
            time.sleep(0.5)
            height = browser.execute_script("return document.documentElement.scrollHeight")
            clip = {"x": 0, "y": 0, "width": width, "height": height, "scale": 1}
            shot = {"format": "png", "captureBeyondViewport": True, "clip": clip}
            picture = browser.execute_cdp_cmd("Page.captureScreenshot", shot)["data"]
            (folder / f"{look}.png").write_bytes(base64.b64decode(picture))


if __name__ == "__main__":
    draw_looks(*map(Path, sys.argv[1:])) if sys.argv[1:] else draw()
