"""Metrics as figures for plotly.js: one for each family of metrics, or one for each metric that runs share."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pipeline.reporting.facts import Point

_MOST_POINTS = 1500  # of one curve: more than a screen has columns
_VAE_TERMS = ("elbo", "kl_divergence", "reconstruction", "beta", "log_likelihood", "bound", "active_units")
FAMILIES = ("Losses", "Accuracies", "VAE terms", "Evaluation", "Other metrics", "Timing")


@dataclass(frozen=True)
class Figure:
    """A title, and a figure as plotly.js takes it."""

    title: str
    is_share: bool  # all its numbers are shares, from 0 to 1
    figure: Mapping[str, Any]


def family(metric: str) -> str:
    """Return the group in which a metric is shown."""
    head, last = metric.partition("/")[0], metric.rpartition("/")[2]
    if head in ("evaluation", "timing"):
        return head.capitalize()
    if "accuracy" in last:
        return "Accuracies"
    if any(term in last for term in _VAE_TERMS):
        return "VAE terms"
    return "Losses" if any(word in last for word in ("loss", "penalty", "regulari")) else "Other metrics"


def metrics(points: Sequence[Point]) -> list[str]:
    """Return the names of all metrics, in the order of families and, inside one, of appearance."""
    names = list(dict.fromkeys(name for point in points for name in point if name != "step"))
    return sorted(names, key=lambda name: FAMILIES.index(family(name)))


def by_family(points: Sequence[Point]) -> list[Figure]:
    """Return a figure for each family that has metrics, with a curve for each of them."""
    groups: dict[str, list[str]] = {}
    for name in metrics(points):
        groups.setdefault(family(name), []).append(name)
    return [_figure(title, {name: curve(points, name) for name in names}) for title, names in groups.items()]


def by_metric(runs: Mapping[str, Sequence[Point]]) -> list[Figure]:
    """Return a figure for each metric that any run has, with a curve for each of those runs."""
    everything = [point for points in runs.values() for point in points]
    return [
        _figure(name, {run: found for run, points in runs.items() if (found := curve(points, name))[0]})
        for name in metrics(everything)
    ]


def curve(points: Sequence[Point], name: str) -> tuple[list[int], list[float | None]]:
    """Return (steps, values) of a metric; a value that is not finite is None, a gap.

    Of a long curve every run of neighbours keeps its least and its greatest value, so that no peak is lost.
    """
    steps = [int(point["step"]) for point in points if name in point]
    values = [float(point[name]) if math.isfinite(point[name]) else None for point in points if name in point]
    if len(steps) > _MOST_POINTS:
        kept = _kept(values)
        return [steps[index] for index in kept], [values[index] for index in kept]
    return steps, values


def _kept(values: Sequence[float | None]) -> list[int]:
    size = math.ceil(2 * len(values) / _MOST_POINTS)
    kept = {0, len(values) - 1}
    for begin in range(0, len(values), size):
        known = [index for index in range(begin, min(begin + size, len(values))) if values[index] is not None]
        kept |= (
            {min(known, key=lambda i: values[i] or 0), max(known, key=lambda i: values[i] or 0)} if known else {begin}
        )
    return sorted(kept)


def _figure(title: str, curves: Mapping[str, tuple[list[int], list[float | None]]]) -> Figure:
    is_share = all("accuracy" in name for name in curves) or "accuracy" in title
    traces = [
        {
            "type": "scatter",
            "mode": "lines+markers" if len(steps) <= 40 else "lines",
            "name": name,
            "x": steps,
            "y": values,
            "hovertemplate": f"%{{y:{'.1%' if is_share else '.5g'}}}",
        }
        for name, (steps, values) in curves.items()
    ]
    axis = {"tickformat": ".0%", "range": [-0.03, 1.03]} if is_share else {}
    layout = {
        "xaxis": {"unifiedhovertitle": {"text": "step %{x:,}"}},
        "yaxis": axis,
        "hovermode": "x unified",
        "showlegend": True,
    }
    return Figure(title, is_share, {"data": traces, "layout": layout})
