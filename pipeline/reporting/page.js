"use strict";
(() => {
  const read = (id) => JSON.parse(document.getElementById(id).textContent);
  const css = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  const dark = matchMedia("(prefers-color-scheme: dark)");

  // Plots: the colours are those of the page, now and when the scheme changes.
  const figures = read("figure-data");
  const colours = () => ({
    paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: "rgba(0,0,0,0)",
    "font.color": css("--ink"), "font.family": getComputedStyle(document.body).fontFamily, "font.size": 13,
    colorway: css("--colours").split(",").map((one) => one.trim()),
    "xaxis.gridcolor": css("--line"), "xaxis.zerolinecolor": css("--line"), "xaxis.linecolor": css("--line"),
    "yaxis.gridcolor": css("--line"), "yaxis.zerolinecolor": css("--line"), "yaxis.linecolor": css("--line"),
    "modebar.bgcolor": "rgba(0,0,0,0)", "modebar.color": css("--soft"), "modebar.activecolor": css("--accent"),
    "hoverlabel.bgcolor": css("--card"), "hoverlabel.bordercolor": css("--line"), "hoverlabel.font.color": css("--ink"),
  });
  const shape = {
    margin: { l: 52, r: 12, t: 32, b: 30 }, dragmode: matchMedia("(pointer: coarse)").matches ? false : "zoom",
    legend: { orientation: "h", y: -0.12, x: 0, yanchor: "top", font: { size: 12 } },
  };
  const config = {
    displaylogo: false, displayModeBar: true,
    modeBarButtons: [["zoomIn2d", "zoomOut2d", "resetScale2d", "toImage"]],
  };
  const nested = (flat) => {
    const tree = {};
    for (const [key, value] of Object.entries(flat)) {
      const path = key.split("."), last = path.pop();
      path.reduce((node, part) => (node[part] ??= {}), tree)[last] = value;
    }
    return tree;
  };
  const merged = (a, b) => {
    const both = { ...a };
    for (const [key, value] of Object.entries(b)) {
      both[key] = value && typeof value === "object" && !Array.isArray(value) ? merged(both[key] ?? {}, value) : value;
    }
    return both;
  };
  const inLines = (name) => name.replace(/.{28}(?=.)/g, "$&<br>");  // as long as fits a telephone, beside its colour
  const draw = (place) => {
    const { data, layout } = figures[Number(place.dataset.figure)];
    const named = data.map((curve) => ({ ...curve, name: inLines(curve.name) }));
    Plotly.newPlot(place, named, merged(merged(layout, shape), nested(colours())), config);
  };
  const plots = [...document.querySelectorAll(".drawing")];
  plots.forEach(draw);
  // A plot is as wide as its place before a frame is shown: a window, a turned phone and a scroll bar change it.
  const widths = new Map(plots.map((place) => [place, place.clientWidth]));
  const fit = new ResizeObserver((seen) => seen.forEach(({ target: place }) => {
    if (widths.get(place) === place.clientWidth) return;
    widths.set(place, place.clientWidth);
    Plotly.relayout(place, { autosize: true });
  }));
  plots.forEach((place) => fit.observe(place));
  dark.addEventListener("change", () => plots.forEach((place) => Plotly.relayout(place, colours())));
  document.querySelectorAll(".plot").forEach((plot) => {
    const place = plot.querySelector(".drawing");
    plot.querySelectorAll("input[type=radio]").forEach((choice) => choice.addEventListener("change", () => {
      const range = figures[Number(place.dataset.figure)].layout.yaxis.range;
      const linear = range ? { "yaxis.range": range } : { "yaxis.autorange": true };
      Plotly.relayout(place, choice.value === "log" ? { "yaxis.type": "log", "yaxis.autorange": true } : { "yaxis.type": "linear", ...linear });
    }));
  });

  // Pictures over time.
  const pictures = read("picture-data");
  document.querySelectorAll(".slides").forEach((slides) => {
    const all = pictures[slides.dataset.preview], image = slides.querySelector("img");
    const slider = slides.querySelector("input"), output = slides.querySelector("output"), button = slides.querySelector("button");
    let timer = 0;
    const show = () => {
      const { step, uri } = all[Number(slider.value)], text = `step ${step.toLocaleString("en")}`;
      image.src = uri;
      image.alt = `${slides.dataset.preview} at ${text}`;
      output.textContent = text;
      slider.setAttribute("aria-valuetext", text);
    };
    const stop = () => { clearInterval(timer); timer = 0; if (button) button.textContent = "Play"; };
    slider?.addEventListener("input", () => { stop(); show(); });
    button?.addEventListener("click", () => {
      if (timer) return stop();
      button.textContent = "Pause";
      if (Number(slider.value) === all.length - 1) slider.value = -1;
      timer = setInterval(() => {
        if (Number(slider.value) >= all.length - 1) return stop();
        slider.value = Number(slider.value) + 1;
        show();
      }, Math.max(60, Math.min(400, 8000 / all.length)));
    });
  });

  // How old the page is: a page of a running run that grows no older has been left behind.
  const written = document.querySelector("time[data-age]");
  if (written) {
    const tell = () => {
      const minutes = Math.max(0, Math.round((Date.now() - Date.parse(written.dateTime)) / 60000));
      const unit = minutes < 90 ? [minutes, "minute"] : minutes < 2880 ? [Math.round(minutes / 60), "hour"] : [Math.round(minutes / 1440), "day"];
      written.nextElementSibling.textContent = minutes ? ` (${unit[0]} ${unit[1]}${unit[0] === 1 ? "" : "s"} ago)` : " (just now)";
    };
    tell();
    setInterval(tell, 60000);
  }
})();
