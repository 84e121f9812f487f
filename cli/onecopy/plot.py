# SPDX-License-Identifier: BSD-3-Clause
"""`onecopy plot DIR`: draws what `onecopy bench` has written. Reads CSV only; measures nothing."""

from __future__ import annotations

import argparse
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from onecopy import cells, machine, peers, run, tables
from onecopy.cells import Cell, FigureRow, Row, Spread

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from numpy.typing import NDArray

#: Okabe and Ito's colours (Color Universal Design, 2008), told apart by everybody; and a mark each for print.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000", "#8A8A8A")
MARKS = ("o", "s", "^", "D", "v", "P", "X", "*")
DPI = 150


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("directory", type=Path, help="what `onecopy bench` wrote: times.csv")
    parser.add_argument("--output", type=Path, metavar="DIR", help="where the PNGs go (default: the same directory)")


def _style(index: int) -> dict[str, Any]:
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
    """A log axis labelled with plain numbers, 1 well visible, wide enough for every median and most of the bands."""
    low, high = min(low, 0.9) / 1.1, max(high, 1.5) * 1.15
    axes.set_yscale("log")
    axes.set_ylim(low, high)
    steps = [0.02, 0.05, 0.1, 0.2, 0.5, 1, 1.5, 2, 3, 4, 6, 8, 12, 16, 24, 50, 100, 200, 500]
    inside = [step for step in steps if low <= step <= high]
    axes.set_yticks(inside, [f"{step:g}" for step in inside])
    axes.minorticks_off()


def _sized(found: Mapping[Cell, Spread], ranks: int, mode: str) -> dict[str, list[tuple[int, Spread]]]:
    """operation -> its sizes and spreads, ascending; operations in the order they were measured."""
    series: dict[str, list[tuple[int, Spread]]] = {}
    for cell, spread in found.items():
        if (cell.ranks, cell.mode) == (ranks, mode) and cell.bytes > 0:
            series.setdefault(cell.collective, []).append((cell.bytes, spread))
    return {name: sorted(points, key=lambda point: point[0]) for name, points in series.items()}


def _curve(axes: Axes, points: Sequence[tuple[int, Spread]], index: int, label: str) -> None:
    """Medians, and the quartiles as a band."""
    style = _style(index)
    sizes = [size for size, _ in points]
    axes.plot(sizes, [s.median for _, s in points], label=label, zorder=3, **style)
    low, high = [s.low for _, s in points], [s.high for _, s in points]
    axes.fill_between(sizes, low, high, color=style["color"], alpha=0.18, linewidth=0, zorder=2)


@dataclass(frozen=True)
class Caption:
    """What every figure says of its origin."""

    #: variant -> what people call it
    names: Mapping[str, str]
    origin: str
    #: Why the figures are to be taken with care, "" when they are not.
    care: str

    def name(self, variant: str) -> str:
        return self.names.get(variant, variant)

    def write(self, figure: Figure, title: str) -> None:
        """Around the panels, in room of its own: the layout knows nothing of texts that stand outside of it."""
        height = figure.get_figheight()
        top = (0.75 if self.care else 0.55) / height
        figure.set_layout_engine("constrained", rect=(0, 0, 1, 1 - top))
        for text, below, size, colour in (
            (title, 0.08, 12, "black"),
            (self.origin, 0.33, 8, "#555555"),
            (self.care, 0.52, 9, "#C00000"),
        ):
            figure.text(0.5, 1 - below / height, text, ha="center", va="top", fontsize=size, color=colour)


def caption(facts: Mapping[str, Any], rows: Sequence[Row]) -> Caption:
    """Of machine.json, as far as it tells: {} will do."""
    versions: Mapping[str, str] = facts.get("variants") or {}
    names = {
        variant: peers.title(said) or variant for variant, said in versions.items() if not cells.is_subject(variant)
    }
    rounds = len({row.round for row in rows})
    cpu = f"{facts['cpus']} cores of {facts.get('cpu', 'a processor')}" if "cpus" in facts else "machine unknown"
    parts = [
        cpu + (", virtual" if facts.get("virtual") else ""),
        f"Linux {facts['kernel']}" if "kernel" in facts else "",
        ", ".join(dict.fromkeys(peers.title(said) for said in versions.values())),
        f"onecopy {facts['onecopy']}" if "onecopy" in facts else "",
        str(facts.get("date", ""))[:10],
        f"{rounds} round{'s' * (rounds != 1)}",
    ]
    return Caption(names, " · ".join(part for part in parts if part), machine.busy(facts))


def _grid(panels: Sequence[str], share: bool) -> tuple[Figure, NDArray[Any]]:
    """A figure with a panel each, four in a line."""
    from matplotlib.figure import Figure

    columns = min(4, len(panels))
    lines = math.ceil(len(panels) / columns)
    figure = Figure(figsize=(max(1.2 + 3.1 * columns, 8.0), 1.7 + 2.7 * lines))
    grid = figure.subplots(lines, columns, squeeze=False, sharey=share)
    for axes, name in zip(grid.flat, panels, strict=False):
        axes.set_title(name, fontsize=11)
        axes.tick_params(axis="x", labelsize=8)
    for axes in grid.flat[len(panels) :]:
        axes.set_visible(False)
    return figure, grid


def speedups(rows: Sequence[Row], base: str, subject: str, mode: str, said: Caption) -> Figure | None:
    """Ratio over size, one panel an operation: with all in one, the bands of a noisy machine hide each other."""
    # The line is the ratio of medians, as the tables have it; the band shows how it varied from round to round.
    medians = cells.spreads(rows)
    found = {
        cell: replace(spread, median=cells.ratio(medians[base][cell], medians[subject][cell]))
        for cell, spread in cells.round_ratios(rows, base, subject).items()
    }
    by_ranks = {n: _sized(found, n, mode) for n in sorted({cell.ranks for cell in found if cell.mode == mode})}
    by_ranks = {ranks: series for ranks, series in by_ranks.items() if series}
    if not by_ranks:
        return None
    names = list(dict.fromkeys(name for series in by_ranks.values() for name in series))
    figure, grid = _grid(names, share=True)
    labels = {}
    for index, (ranks, series) in enumerate(by_ranks.items()):
        kinds = {cells.kind_of(name) for name in series}
        kind = "collectives" if "collectives" in kinds else "messages"
        counted = [s.median for name in series if cells.kind_of(name) == kind for _, s in series[name]]
        labels[ranks] = f"{ranks} ranks" + (f" (geometric mean {cells.geometric_mean(counted):.2f})" if counted else "")
        for axes, name in zip(grid.flat, names, strict=False):
            if name in series:
                _curve(axes, series[name], index, labels[ranks])
    everything = [s.median for series in by_ranks.values() for points in series.values() for _, s in points]
    _ratio_axis(grid.flat[0], min(everything), max(everything))
    for axes, name in zip(grid.flat, names, strict=False):
        _sizes_axis(axes, sorted({size for series in by_ranks.values() for size, _ in series.get(name, [])}))
        axes.axhline(1, color="black", linewidth=1.2, zorder=1)
        axes.axhspan(axes.get_ylim()[0], 1, color="black", alpha=0.05, zorder=0, linewidth=0)
    _finish(figure, grid, f"times as fast as {said.name(base)}")
    said.write(figure, f"{subject} against {said.name(base)}, {mode}; ratio of medians, band: quartiles of rounds")
    return figure


def _finish(figure: Figure, grid: NDArray[Any], ylabel: str) -> None:
    for axes in grid[:, 0]:
        axes.set_ylabel(ylabel, fontsize=9)
    handles = {}
    for axes in grid.flat:
        handles.update({label: line for line, label in zip(*axes.get_legend_handles_labels(), strict=True)})
    figure.legend(list(handles.values()), list(handles), loc="outside lower center", ncols=6, frameon=False, fontsize=9)


def times(rows: Sequence[Row], ranks: int, mode: str, variants: Sequence[str], said: Caption) -> Figure | None:
    """Time over size, one panel an operation, one curve a variant, and memcpy's."""
    spreads = cells.spreads(rows)
    series = {variant: _sized(spreads[variant], ranks, mode) for variant in variants}
    names = list(dict.fromkeys(name for by_name in series.values() for name in by_name))
    if not names:
        return None
    memcpy = cells.memcpy_times(rows)
    figure, grid = _grid(names, share=False)
    for axes, name in zip(grid.flat, names, strict=False):
        sizes = sorted({size for by_name in series.values() for size, _ in by_name.get(name, [])})
        for index, variant in enumerate(variants):
            if points := series[variant].get(name):
                _curve(axes, points, index, said.name(variant))
        yardstick = [(size, memcpy.get(Cell(name, size, ranks, mode))) for size in sizes]
        known = [(size, usec) for size, usec in yardstick if usec]
        if known:
            label = "plain copies of the same bytes (a yardstick)"
            axes.plot(*zip(*known, strict=True), color="black", linestyle=":", linewidth=1.4, label=label)
        _sizes_axis(axes, sizes)
        axes.set_yscale("log")
    _finish(figure, grid, "µs")
    said.write(figure, f"time of a call, {ranks} ranks, {mode}; median, band: quartiles")
    return figure


def draw(directory: Path, output: Path) -> list[Path]:
    """Every figure the rows allow; the PNGs written. BrokenError for a CSV that is none of ours."""
    rows = cells.drawn(cells.read(Row, directory / "times.csv"))
    said = caption(machine.recorded(directory / "machine.json"), rows)
    variants = list(dict.fromkeys(row.variant for row in rows))
    figures: dict[str, Figure | None] = {}
    for mode in dict.fromkeys(row.mode for row in rows):
        for subject in tables.subjects(variants):
            for base in tables.baselines(variants):
                figures[f"speedup-{subject}-{base}-{mode}"] = speedups(rows, base, subject, mode, said)
        for ranks in sorted({row.ranks for row in rows if row.mode == mode}):
            figures[f"times-{ranks}-ranks-{mode}"] = times(rows, ranks, mode, variants, said)
    output.mkdir(parents=True, exist_ok=True)
    written = []
    for name, figure in figures.items():
        if figure:
            path = output / f"{name}.png"
            figure.savefig(path, dpi=DPI)
            written.append(path)
    return written


def lacking(directory: Path) -> str:
    """Why nothing was drawn of a directory whose CSV is right."""
    if cells.read(Row, directory / "times.csv"):
        return f"nothing to draw in {directory}: first use alone, whose two sizes are told by `bench` itself"
    if cells.read(FigureRow, directory / "figures.csv"):
        return f"nothing to draw in {directory}: rates of programs alone, which `bench` itself has told"
    return f"no measurements in {directory}: the run ended before its first"


def main(args: argparse.Namespace) -> int:
    directory, output = args.directory, args.output or args.directory
    if not (directory / "times.csv").is_file():
        run.note(f"{directory} holds no times.csv: name a directory that `onecopy bench` wrote")
        return 1
    try:
        written = draw(directory, output)
        why = "" if written else lacking(directory)
    except cells.BrokenError as error:
        why = f"{directory / 'times.csv'}: {error}"
    except OSError as error:
        why = f"{error.filename or output}: {error.strerror}"
    if why:
        run.note(why)
        return 1
    for path in written:
        print(path)
    return 0
