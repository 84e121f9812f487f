# SPDX-License-Identifier: BSD-3-Clause
"""`onecopy plot DIR`: draws what `onecopy bench` has written. Reads CSV only; measures nothing."""

from __future__ import annotations

import argparse
import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from onecopy import cells, run, tables
from onecopy.cells import Cell, Row, Spread

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

#: Okabe and Ito's colours (Color Universal Design, 2008), told apart by everybody; and a mark each for print.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000", "#8A8A8A")
MARKS = ("o", "s", "^", "D", "v", "P", "X", "*")
DPI = 150


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("directory", type=Path, help="what `onecopy bench` wrote: times.csv")
    parser.add_argument("--output", type=Path, metavar="DIR", help="where the PNGs go (default: the same directory)")


def _style(index: int) -> dict[str, object]:
    return {
        "color": COLOURS[index % len(COLOURS)],
        "marker": MARKS[index % len(MARKS)],
        "markersize": 5,
        "linewidth": 1.6,
    }


def _sizes_axis(axes: Axes, sizes: Sequence[int]) -> None:
    axes.set_xscale("log", base=2)
    axes.set_xticks(sizes, [cells.size_text(size) for size in sizes])
    axes.minorticks_off()
    axes.set_xlabel("message size in bytes")
    axes.grid(True, which="major", alpha=0.25)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)


def _ratio_axis(axes: Axes, low: float, high: float) -> None:
    """A log axis labelled with plain numbers, 1 well visible, wide enough for every median."""
    low, high = min(low, 0.9), max(high, 1.5)
    axes.set_yscale("log")
    axes.set_ylim(low / 1.1, high * 1.15)
    steps = [0.02, 0.05, 0.1, 0.2, 0.5, 1, 1.5, 2, 3, 4, 6, 8, 12, 16, 24, 50, 100]
    inside = [step for step in steps if low / 1.1 <= step <= high * 1.15]
    axes.set_yticks(inside, [f"{step:g}" for step in inside])
    axes.minorticks_off()


def _sized(found: Mapping[Cell, Spread], ranks: int, mode: str) -> dict[str, list[tuple[int, Spread]]]:
    """operation -> its sizes and spreads, ascending; operations in the order they were measured."""
    series: dict[str, list[tuple[int, Spread]]] = {}
    for cell, spread in found.items():
        if (cell.ranks, cell.mode) == (ranks, mode) and cell.bytes > 0:
            series.setdefault(cell.collective, []).append((cell.bytes, spread))
    return {name: sorted(points, key=lambda point: point[0]) for name, points in series.items()}


def speedups(rows: Sequence[Row], base: str, subject: str, mode: str) -> Figure | None:
    """Per collective over size, one panel a number of ranks."""
    from matplotlib.figure import Figure

    # The line is the ratio of medians, as the tables have it; the band shows how it varied from round to round.
    medians = cells.spreads(rows)
    found = {
        cell: replace(spread, median=cells.ratio(medians[base][cell], medians[subject][cell]))
        for cell, spread in cells.round_ratios(rows, base, subject).items()
    }
    panels = sorted({cell.ranks for cell in found if cell.mode == mode})
    by_ranks = {ranks: _sized(found, ranks, mode) for ranks in panels}
    by_ranks = {ranks: series for ranks, series in by_ranks.items() if series}
    if not by_ranks:
        return None
    everything = [spread.median for series in by_ranks.values() for points in series.values() for _, spread in points]
    names = list(dict.fromkeys(name for series in by_ranks.values() for name in series))
    figure = Figure(figsize=(1.6 + 5.2 * len(by_ranks), 4.6), layout="constrained")
    grid = figure.subplots(1, len(by_ranks), squeeze=False, sharey=True)[0]
    for axes, (ranks, series) in zip(grid, by_ranks.items(), strict=True):
        for name, points in series.items():
            style = _style(names.index(name))
            sizes = [size for size, _ in points]
            axes.plot(sizes, [s.median for _, s in points], label=name, zorder=3, **style)
            axes.fill_between(
                sizes,
                [s.low for _, s in points],
                [s.high for _, s in points],
                color=style["color"],
                alpha=0.13,
                linewidth=0,
                zorder=2,
            )
        _sizes_axis(axes, sorted({size for points in series.values() for size, _ in points}))
        mean = cells.geometric_mean(s.median for name in series.keys() - cells.UNCOUNTED for _, s in series[name])
        axes.set_title(f"{ranks} ranks (geometric mean {mean:.2f})", fontsize=11)
    _ratio_axis(grid[0], min(everything), max(everything))
    for axes in grid:
        axes.axhline(1, color="black", linewidth=1.2, zorder=1)
        axes.axhspan(grid[0].get_ylim()[0], 1, color="black", alpha=0.05, zorder=0, linewidth=0)
    grid[0].set_ylabel(f"times faster than {base}")
    handles = {label: line for axes in grid for line, label in zip(*axes.get_legend_handles_labels(), strict=True)}
    figure.legend([handles[n] for n in names], names, loc="outside right upper", frameon=False)
    figure.suptitle(f"{subject} against {base}, {mode}; ratio of medians, band: quartiles of rounds", fontsize=12)
    return figure


def times(rows: Sequence[Row], ranks: int, mode: str, variants: Sequence[str]) -> Figure | None:
    """Time over size, one panel an operation, one curve a variant, and the copy limit."""
    from matplotlib.figure import Figure

    spreads = cells.spreads(rows)
    series = {variant: _sized(spreads[variant], ranks, mode) for variant in variants}
    names = list(dict.fromkeys(name for by_name in series.values() for name in by_name))
    if not names:
        return None
    limits = cells.limits(rows)
    columns = min(4, len(names))
    lines = math.ceil(len(names) / columns)
    figure = Figure(figsize=(1.2 + 3.3 * columns, 0.9 + 2.9 * lines), layout="constrained")
    grid = figure.subplots(lines, columns, squeeze=False)
    for axes in grid.flat[len(names) :]:
        axes.set_visible(False)
    handles = {}
    for axes, name in zip(grid.flat, names, strict=False):
        sizes = sorted({size for by_name in series.values() for size, _ in by_name.get(name, [])})
        for index, variant in enumerate(variants):
            points = series[variant].get(name, [])
            if not points:
                continue
            style = _style(index)
            where = [size for size, _ in points]
            handles[variant] = axes.plot(where, [s.median for _, s in points], **style)[0]
            axes.fill_between(
                where,
                [s.low for _, s in points],
                [s.high for _, s in points],
                color=style["color"],
                alpha=0.18,
                linewidth=0,
            )
        bounds = [limits.get(Cell(name, size, ranks, mode)) for size in sizes]
        known = [(size, bound) for size, bound in zip(sizes, bounds, strict=True) if bound]
        if known:
            handles["copy limit"] = axes.plot(*zip(*known, strict=True), color="black", linestyle=":", linewidth=1.4)[0]
        _sizes_axis(axes, sizes)
        axes.tick_params(axis="x", labelsize=8)
        axes.set_yscale("log")
        axes.set_title(name, fontsize=11)
    for axes in grid[:, 0]:
        axes.set_ylabel("µs")
    figure.legend(list(handles.values()), list(handles), loc="outside lower center", ncols=6, frameon=False)
    figure.suptitle(f"time of a call, {ranks} ranks, {mode}; median, band: quartiles", fontsize=12)
    return figure


def draw(directory: Path, output: Path) -> list[Path]:
    """Every figure the rows allow; the PNGs written. BrokenError for a CSV that is none of ours."""
    rows = cells.read(Row, directory / "times.csv")
    variants = list(dict.fromkeys(row.variant for row in rows))
    figures: dict[str, Figure | None] = {}
    for mode in dict.fromkeys(row.mode for row in rows):
        if mode.startswith("first-use"):
            continue  # two sizes: a table says it better
        for subject in tables.subjects(variants):
            for base in tables.baselines(variants):
                figures[f"speedup-{subject}-{base}-{mode}"] = speedups(rows, base, subject, mode)
        for ranks in sorted({row.ranks for row in rows if row.mode == mode}):
            figures[f"times-{ranks}-ranks-{mode}"] = times(rows, ranks, mode, variants)
    output.mkdir(parents=True, exist_ok=True)
    written = []
    for name, figure in figures.items():
        if figure:
            path = output / f"{name}.png"
            figure.savefig(path, dpi=DPI)
            written.append(path)
    return written


def main(args: argparse.Namespace) -> int:
    if not (args.directory / "times.csv").is_file():
        run.note(f"{args.directory} holds no times.csv: name a directory that `onecopy bench` wrote")
        return 1
    try:
        written = draw(args.directory, args.output or args.directory)
    except cells.BrokenError as error:
        run.note(f"{args.directory / 'times.csv'}: {error}")
        return 1
    for path in written:
        print(path)
    return 0 if written else 1
