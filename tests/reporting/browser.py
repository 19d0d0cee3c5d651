"""A real browser for the report's tests: Debian's chromium, headless, without network, closed by the test that started it."""

import shutil
from contextlib import contextmanager

import pytest

ARGUMENTS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--disable-dev-shm-usage",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)


@contextmanager
def chromium(profile):
    """A running chromium, or a skip that says what is missing."""
    webdriver = pytest.importorskip("selenium.webdriver", reason="selenium drives the browser: pip install selenium")
    from selenium.webdriver.chrome.service import Service

    browser, driver = shutil.which("chromium"), shutil.which("chromedriver")
    if browser is None or driver is None:
        pytest.skip("no chromium: apt-get install chromium chromium-driver")
    options = webdriver.ChromeOptions()
    options.binary_location = browser
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    for argument in (*ARGUMENTS, f"--user-data-dir={profile}"):
        options.add_argument(argument)
    running = webdriver.Chrome(options=options, service=Service(driver))
    try:
        yield running
    finally:
        running.quit()


def show(running, path, width, scheme="light", media="screen"):
    """Open a page at a width, in a colour scheme, on a screen or on paper."""
    size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 600}
    running.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    features = [{"name": "prefers-color-scheme", "value": scheme}]
    running.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": media, "features": features})
    running.get(path.as_uri())


UNFOLD = "document.querySelectorAll('details').forEach(details => { details.open = true; });"

# Elements that stick out of the page, unless they scroll in their own box or wait off-page for the keyboard.
OVERFLOW = """
const wide = [...document.body.querySelectorAll('*')].filter(element => {
  const place = element.getBoundingClientRect();
  return place.width && place.right > document.documentElement.clientWidth + 1 && !element.closest('.scroll, .skip, thead');
});
const root = document.documentElement;
return [root.scrollWidth - root.clientWidth, wide.slice(0, 5).map(element => element.outerHTML.slice(0, 200))];
"""

# Words of a drawing that reach out of it, and questions whose words reach out of their box.
CLIPPED = """
const out = [];
for (const drawing of document.querySelectorAll('svg.drawing')) {
  const whole = drawing.getBoundingClientRect();
  for (const text of drawing.querySelectorAll('text')) {
    const place = text.getBoundingClientRect();
    if (place.left < whole.left - 1 || place.right > whole.right + 1 || place.bottom > whole.bottom + 2)
      out.push(text.textContent);
  }
  for (const box of drawing.querySelectorAll('rect.question')) {
    let text = box.nextElementSibling;
    for (let line = 0; line < 3; line++, text = text.nextElementSibling)
      if (text.getBoundingClientRect().right > box.getBoundingClientRect().right) out.push(text.textContent);
  }
}
return out;
"""

# WCAG's contrast of each piece of text with the first opaque colour behind it.
CONTRAST = """
const channels = colour => {
  const numbers = colour.match(/[\\d.]+/g).map(Number);
  return numbers.length === 3 ? [...numbers, 1] : numbers;
};
const luminance = ([r, g, b]) => {
  const linear = [r, g, b].map(c => c / 255).map(c => c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4);
  return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2];
};
const behind = element => {
  for (let here = element; here; here = here.parentElement) {
    const colour = channels(getComputedStyle(here).backgroundColor);
    if (colour[3] === 1) return colour;
  }
  return [255, 255, 255, 1];
};
const pieces = [];
const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
while (walker.nextNode()) {
  const element = walker.currentNode.parentElement;
  if (!walker.currentNode.textContent.trim() || element.closest('title, desc, style')) continue;
  const style = getComputedStyle(element);
  const ink = channels(element.closest('svg') ? style.fill : style.color);
  const [a, b] = [luminance(ink), luminance(behind(element))].sort((x, y) => y - x);
  pieces.push([(a + 0.05) / (b + 0.05), walker.currentNode.textContent.trim().slice(0, 60)]);
}
return pieces.sort((x, y) => x[0] - y[0]).slice(0, 3).concat([[pieces.length, 'pieces of text']]);
"""
