"""The page in headless Chromium, from a file, without a network: on a desk, and on a telephone."""

import json
import re
import shutil
import subprocess
import threading

import pytest
from run_folders import CONFIG, make, png

from pipeline.reporting import comparison_page, facts, run_page

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
FLAGS = (
    "--headless --no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking "
    "--disable-component-update --disable-sync --enable-logging=stderr --v=0"
)
DUMP = ("--virtual-time-budget=10000", "--dump-dom")
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

# No window is narrower than 500 pixels, so a telephone is a frame; it is turned when all is drawn, and then measured.
TELEPHONE = """<!doctype html><iframe src="inside.html" width="WIDTH" height="800"></iframe><script>
addEventListener("load", () => setTimeout(() => {
  const frame = document.querySelector("iframe");
  frame.width = 380;
  frame.contentWindow.postMessage("measure", "*");
}, 500));
</script>"""
MEASURE = """<script>
addEventListener("message", () => requestAnimationFrame(() => requestAnimationFrame(() => {
  const end = (one) => one.getBoundingClientRect().right - 0.5;
  const all = (what) => [...document.querySelectorAll(what)];
  const inside = all("figure img, .drawing .main-svg, .drawing .legend, .controls, fieldset");
  const cut = inside.filter((one) => end(one) > Math.min(end(one.closest("figure")), innerWidth) + 0.5);
  console.log("measured " + JSON.stringify({
    inner: innerWidth, wide: document.documentElement.scrollWidth > innerWidth,
    plots: all(".drawing .main-svg").length, images: all("figure img").length,
    cut: cut.map((one) => one.outerHTML.slice(0, 60)),
  }));
})));
</script>"""

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(CHROMIUM is None, reason="needs Chromium: apt-get install chromium"),
]


def probed(page: str, probe: str) -> str:
    """Return a page with a script that stands before everything else."""
    return re.sub(r"(<meta charset=[^>]*>)", lambda head: head[1] + probe, page, count=1)


def opened(page: str, folder, width: int) -> tuple[str, str]:
    """Return the title that a page has given itself, and what Chromium's console said."""
    place = folder / "opened.html"
    place.write_text(page, encoding="utf-8")
    command = [CHROMIUM, *FLAGS.split(), *DUMP, f"--window-size={width},900", f"--user-data-dir={folder / 'profile'}"]
    done = subprocess.run([*command, place.as_uri()], capture_output=True, text=True, timeout=120)
    title = re.search(r"<title>(.*?)</title>", done.stdout)
    assert title, done.stderr
    return title[1], "\n".join(line for line in done.stderr.splitlines() if "CONSOLE" in line)


@pytest.mark.parametrize("width", [1280, 500])
def test_page_opens_without_errors_draws_its_curves_and_its_slider_moves(width, tmp_path) -> None:
    found, console = opened(probed(run_page.write(facts.read(make(tmp_path / "run"))), PROBE), tmp_path, width)
    assert '"errors":[]' in found and not console
    assert '"drawn":2' in found and '"axis":"log"' in found and '"wide":false' in found
    assert '"moved":"samples at step 0"' in found and '"told":"step 0"' in found


def test_comparison_opens_without_errors_and_draws_every_run(tmp_path) -> None:
    other = make(tmp_path / "other", config=CONFIG.replace("hinge", "wasserstein"))
    runs = [facts.read(folder) for folder in (make(tmp_path / "one"), other)]
    found, console = opened(probed(comparison_page.write(runs), PROBE), tmp_path, 1280)
    assert '"errors":[]' in found and not console and '"drawn":4' in found


def measured(page: str, folder, first: int) -> dict:
    """Return what a page on a telephone is measured to be; it runs in real time, as a dumped page draws few frames.

    Args:
      page: as it is.
      folder: for its files.
      first: how many pixels wide the telephone is, before it is turned and is 380.
    """
    (folder / "inside.html").write_text(probed(page, MEASURE), encoding="utf-8")
    (folder / "telephone.html").write_text(TELEPHONE.replace("WIDTH", str(first)), encoding="utf-8")
    command = [CHROMIUM, *FLAGS.split(), "--window-size=1280,900", f"--user-data-dir={folder / 'profile'}"]
    place = (folder / "telephone.html").as_uri()
    with subprocess.Popen([*command, place], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) as browser:
        limit = threading.Timer(100, browser.kill)
        limit.start()
        console = []
        for line in browser.stderr:
            console += [line] if "CONSOLE" in line else []
            if '"measured' in line:
                break
        limit.cancel()
        browser.terminate()
    assert len(console) == 1, console  # no error, and nothing blocked
    return json.loads(re.search(r'"measured (.*)", source', console[0])[1])


def wide_run(folder):
    """Make a run with all that is wide: a history, a grid, names without a space, many curves and scores."""
    made = make(folder, config=CONFIG + f"gan.alternating.note = '{'x' * 200}'\n")
    (made / "history.png").write_bytes(png(9, size=1600))
    (made / "samples" / f"{40:09d}.png").write_bytes(png(9, size=900))
    names = ["generator/loss", *(f"discriminator/loss_of_a_part_{number}" for number in range(9))]
    points = [{"step": step, **dict.fromkeys(names, 0.5), "timing/images_per_second": 9.0} for step in (10, 40)]
    (made / "metrics.jsonl").write_text("".join(json.dumps(point) + "\n" for point in points))
    scores = {f"metric_of_a_long_name_{number}": {"value": 0.5, "spread": 0.1, "note": "y" * 90} for number in range(3)}
    (made / "evaluation.json").write_text(json.dumps({"evaluations": [{"step": 20, "metrics": scores}]}))
    return made


@pytest.mark.parametrize("first", [380, 900])
@pytest.mark.parametrize("kind", ["run", "comparison"])
def test_nothing_is_wider_than_a_telephone(kind, first, tmp_path) -> None:
    runs = [facts.read(wide_run(tmp_path / name)) for name in ("n" * 70, "other")]
    page = run_page.write(runs[0]) if kind == "run" else comparison_page.write(runs)
    found = measured(page, tmp_path, first)
    assert found["inner"] == 380 and found["plots"] and found["images"] >= 2
    assert not found["wide"] and found["cut"] == []
