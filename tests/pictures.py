"""The pictures of the README: `python -m tests.pictures` writes docs/demo.svg and docs/report.png from a run of the demo."""

import base64
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


def terminal(text: str) -> str:
    """The chapters on targets, the database and the forgery, as a drawing of a terminal."""
    lines = text.split("\n")
    first, last = (next(place for place, line in enumerate(lines) if line.startswith(start)) for start in CHAPTERS)
    console = Console(record=True, width=82, file=StringIO(), highlight=False)
    for line in lines[first:last]:
        bold = line[:1].isdigit() or "CAUGHT" in line
        console.print(line, style="bold" if bold else "", markup=False)
    return console.export_svg(title="make demo")


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


if __name__ == "__main__":
    draw()
