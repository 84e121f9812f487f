# SPDX-License-Identifier: BSD-3-Clause
"""Draws the demo's figures from its CSV files; measures nothing."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from pathlib import Path
from statistics import median

import matplotlib as mpl
from example import Example

mpl.use("Agg")
import matplotlib.pyplot as plt
from matplotlib.axes import Axes

PLAIN, ONECOPY = "#9aa0a6", "#1a73e8"


def read(path: Path) -> list[dict[str, str]]:
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def bars(axes: Axes, title: str, unit: str, plain: list[float], onecopy: list[float]) -> None:
    """Medians as bars, every single run as a dot."""
    for x, (name, values, colour) in enumerate((("MPI alone", plain, PLAIN), ("with onecopy", onecopy, ONECOPY))):
        bar = axes.bar(x, median(values), width=0.6, color=colour, label=name)
        axes.plot([x] * len(values), values, "o", color="black", markersize=3)
        axes.bar_label(bar, fmt="%.3g", label_type="center", color="white", fontsize=9)
    axes.set_xticks([0, 1], ["MPI\nalone", "with\nonecopy"])
    axes.set_title(title, fontsize=10)
    axes.set_ylabel(unit)
    axes.set_ylim(0, max(plain + onecopy) * 1.2)
    axes.spines[["top", "right"]].set_visible(False)


def draw(examples: Sequence[Example], hpcc_csv: Path, picture: Path) -> None:
    """Two panels an example, its time in the MPI and in all, and one of hpcc."""
    figures = read(hpcc_csv)
    count = 2 * len(examples)
    figure, panels = plt.subplots(
        1, count + 1, figsize=(2.4 * count + 4.4, 3.8), width_ratios=[1] * count + [1.6], layout="constrained"
    )
    shown = [(example, time) for example in examples for time in (example.times[1], example.times[0])]
    for axes, (example, time) in zip(panels, shown, strict=False):
        plain, ours = (
            [float(row[time.key]) for row in read(example.table) if row["onecopy"] == onecopy] for onecopy in "01"
        )
        bars(axes, f"{example.name}: {time.label}", "seconds", plain, ours)
    axes = panels[-1]
    speedups = [float(row["speedup"]) for row in figures]
    axes.barh([row["figure"] for row in figures], speedups, color=ONECOPY)
    axes.axvline(1, color="black", linewidth=0.8)
    axes.set_title("hpcc: speed-up with onecopy", fontsize=10)
    axes.invert_yaxis()
    axes.spines[["top", "right"]].set_visible(False)
    figure.savefig(picture, dpi=120)
    plt.close(figure)
