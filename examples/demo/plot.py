# SPDX-License-Identifier: BSD-3-Clause
"""Draws the demo's figures from its CSV files; measures nothing."""

from __future__ import annotations

import csv
from pathlib import Path
from statistics import median

import matplotlib as mpl

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
        axes.bar(x, median(values), width=0.6, color=colour, label=name)
        axes.plot([x] * len(values), values, "o", color="black", markersize=3)
        axes.annotate(f"{median(values):.3g}", (x, median(values)), ha="center", va="bottom", fontsize=9)
    axes.set_xticks([0, 1], ["MPI alone", "with onecopy"])
    axes.set_title(title, fontsize=10)
    axes.set_ylabel(unit)
    axes.set_ylim(0, max(plain + onecopy) * 1.2)
    axes.spines[["top", "right"]].set_visible(False)


def draw(asp_csv: Path, hpcc_csv: Path, picture: Path) -> None:
    runs = read(asp_csv)
    plain = [row for row in runs if row["onecopy"] == "0"]
    ours = [row for row in runs if row["onecopy"] == "1"]
    figures = read(hpcc_csv)
    figure, panels = plt.subplots(1, 3, figsize=(12, 3.8), width_ratios=[1, 1, 1.6])
    for axes, column, title in (
        (panels[0], "bcast_s", "asp: time in broadcasts"),
        (panels[1], "total_s", "asp: total time"),
    ):
        bars(axes, title, "seconds", [float(row[column]) for row in plain], [float(row[column]) for row in ours])
    axes = panels[2]
    speedups = [float(row["speedup"]) for row in figures]
    axes.barh([row["figure"] for row in figures], speedups, color=ONECOPY)
    axes.axvline(1, color="black", linewidth=0.8)
    axes.set_title("hpcc: speed-up with onecopy", fontsize=10)
    axes.invert_yaxis()
    axes.spines[["top", "right"]].set_visible(False)
    figure.tight_layout()
    figure.savefig(picture, dpi=120)
    plt.close(figure)
