"""The page in headless Chromium, from a file, without a network."""

import re
import shutil
import subprocess

import pytest
from run_folders import CONFIG, make

from pipeline.reporting import comparison_page, facts, run_page

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
FLAGS = (
    "--headless --no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking "
    "--disable-component-update --disable-sync --enable-logging=stderr --v=0 --virtual-time-budget=10000 --dump-dom"
)
# Stands before everything else: what it finds is written where the dumped page shows it.
PROBE = """<script>
const errors = [];
addEventListener("error", (event) => errors.push(event.message));
addEventListener("securitypolicyviolation", (event) => errors.push("blocked: " + event.blockedURI));
addEventListener("load", () => setTimeout(() => {
  const found = { drawn: document.querySelectorAll(".drawing .main-svg .scatterlayer .trace").length };
  const slider = document.querySelector("input[type=range]"), image = document.querySelector(".slides img");
  if (slider) {
    const last = image.src;
    slider.value = 0;
    slider.dispatchEvent(new Event("input"));
    found.moved = image.src !== last && image.alt;
    found.told = document.querySelector(".slides output").textContent;
  }
  const log = document.querySelector("input[value=log]");
  log.checked = true;
  log.dispatchEvent(new Event("change"));
  found.axis = document.querySelector(".drawing").layout.yaxis.type;
  found.wide = document.documentElement.scrollWidth > innerWidth;
  document.title = JSON.stringify({ ...found, errors });
}, 500));
</script>"""

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(CHROMIUM is None, reason="needs Chromium: apt-get install chromium"),
]


def opened(page: str, folder, width: int) -> tuple[str, str]:
    """Return what the probe found in a page, and what Chromium's console said."""
    place = folder / "probed.html"
    place.write_text(re.sub(r"(<meta charset=[^>]*>)", lambda head: head[1] + PROBE, page, count=1), encoding="utf-8")
    command = [CHROMIUM, *FLAGS.split(), f"--window-size={width},900", f"--user-data-dir={folder / 'profile'}"]
    done = subprocess.run([*command, place.as_uri()], capture_output=True, text=True, timeout=120)
    title = re.search(r"<title>(.*?)</title>", done.stdout)
    assert title, done.stderr
    return title[1], "\n".join(line for line in done.stderr.splitlines() if "CONSOLE" in line)


@pytest.mark.parametrize("width", [1280, 500])
def test_page_opens_without_errors_draws_its_curves_and_its_slider_moves(width, tmp_path) -> None:
    found, console = opened(run_page.write(facts.read(make(tmp_path / "run"))), tmp_path, width)
    assert '"errors":[]' in found and not console
    assert '"drawn":2' in found and '"axis":"log"' in found and '"wide":false' in found
    assert '"moved":"samples at step 0"' in found and '"told":"step 0"' in found


def test_comparison_opens_without_errors_and_draws_every_run(tmp_path) -> None:
    other = make(tmp_path / "other", config=CONFIG.replace("hinge", "wasserstein"))
    runs = [facts.read(folder) for folder in (make(tmp_path / "one"), other)]
    found, console = opened(comparison_page.write(runs), tmp_path, 1280)
    assert '"errors":[]' in found and not console and '"drawn":4' in found
