# SPDX-License-Identifier: BSD-3-Clause
"""What `onecopy bench` prints when it is done, made from rows alone."""

from __future__ import annotations

import csv
import statistics
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from rich.table import Table

from onecopy import cells
from onecopy.cells import Cell, FigureRow, Row, Spread

SMALL = 4096  # up to here a difference in ns says more than a ratio
LIKE = "at like speed"
TIMES_MEMCPY = "x memcpy"


def baselines(variants: Sequence[str]) -> list[str]:
    return [v for v in variants if not cells.is_subject(v)]


def subjects(variants: Sequence[str]) -> list[str]:
    return [v for v in variants if cells.is_subject(v)]


def _shown(spread: Spread) -> str:
    digits = 3 if spread.median < 10 else 1
    return f"{spread.median:.{digits}f} [dim]{spread.low:.{digits}f}-{spread.high:.{digits}f}[/]"


def _ratio(value: float) -> str:
    return f"[red]{value:.2f}[/]" if value < 1 else f"{value:.2f}"


def _comparison(base: Spread, subject: Spread, size: int, difference: Spread | None) -> str:
    text = _ratio(cells.ratio(base, subject))
    if size <= SMALL and difference:
        text += f" [dim]{difference.median * 1000:+.0f} ns[/]"
    return text


def _cells(spreads: Mapping[str, Mapping[Cell, Spread]]) -> list[Cell]:
    """In the order they were measured."""
    return list(dict.fromkeys(cell for by_cell in spreads.values() for cell in by_cell))


def _by_operation(table: Table, found: Sequence[Cell], rows: Iterator[list[str]]) -> Table:
    """Rows led by operation and size, a line between operations."""
    last = ""
    for cell, row in zip(found, rows, strict=True):
        if last and cell.collective != last:
            table.add_section()
        last = cell.collective
        table.add_row(cell.collective, cells.size_text(cell.bytes), *row)
    return table


def _titled(title: str, mark: str) -> Table:
    return Table(title=f"{title} [red]({mark})[/]" if mark else title, title_justify="left")


def _started(title: str, mark: str, columns: Sequence[str]) -> Table:
    table = _titled(title, mark)
    table.add_column("operation")
    for column in ("bytes", *columns):
        table.add_column(column, justify="right", overflow="fold")
    return table


def times(rows: Sequence[Row], mark: str = "") -> Iterator[Table]:
    """Two tables for each number of ranks and mode: medians with quartiles in us; ratios, and how long the first of
    ours takes beside memcpy(). `mark` is said in each title."""
    spreads = cells.spreads(rows)
    over_memcpy = cells.memcpy_ratios(rows)
    differences = {
        (base, subject): cells.differences(rows, base, subject)
        for subject in subjects(list(spreads))
        for base in baselines(list(spreads))
    }
    for ranks, mode in dict.fromkeys((cell.ranks, cell.mode) for cell in _cells(spreads)):
        mine = [cell for cell in _cells(spreads) if (cell.ranks, cell.mode) == (ranks, mode)]
        by_variant = {v: spreads[v] for v in spreads if any(cell in spreads[v] for cell in mine)}
        title = f"{ranks} ranks, {mode}"
        table = _started(f"{title}: median us, quartiles", mark, list(by_variant))
        yield _by_operation(
            table, mine, ([_shown(v[cell]) if cell in v else "-" for v in by_variant.values()] for cell in mine)
        )
        ours, theirs = subjects(list(by_variant)), baselines(list(by_variant))
        pairs = [(base, subject) for subject in ours for base in theirs]
        beside = over_memcpy.get(ours[0], {}) if ours else {}
        compared = any(cell in beside for cell in mine)
        if not pairs:
            continue
        columns = [f"{base}/{subject}" for base, subject in pairs] + ([TIMES_MEMCPY] if compared else [])
        lines = []
        for cell in mine:
            line = [
                _comparison(
                    by_variant[base][cell], by_variant[subject][cell], cell.bytes, differences[base, subject].get(cell)
                )
                if cell in by_variant[base] and cell in by_variant[subject]
                else "-"
                for base, subject in pairs
            ]
            if compared:
                line.append(f"{beside[cell].median:.2f}" if cell in beside else "-")
            lines.append(line)
        yield _by_operation(_started(f"{title}: how many times as fast", mark, columns), mine, iter(lines))


def summary(rows: Sequence[Row], mark: str = "") -> Table | None:
    """Geometric means over all cells both variants have, of collectives and of messages, and the worst cell."""
    spreads = cells.spreads(rows)
    table = _titled("ratio over all operations and sizes", mark)
    like = {
        (base, subject): cells.like_ratios(rows, base, subject)
        for subject in subjects(list(spreads))
        for base in baselines(list(spreads))
    }
    for column in ("ranks", "mode", "of", "", "geometric mean", LIKE, "worst cell", "cells below 1"):
        table.add_column(column, justify="left" if column in ("mode", "of", "", "worst cell") else "right")
    groups = dict.fromkeys((cell.ranks, cell.mode, cells.kind_of(cell.collective)) for cell in _cells(spreads))
    for ranks, mode, kind in (group for group in groups if group[2]):
        for subject in subjects(list(spreads)):
            for base in baselines(list(spreads)):
                ratios = {
                    cell: cells.ratio(spreads[base][cell], spreads[subject][cell])
                    for cell in spreads[subject]
                    if cell in spreads[base]
                    and (cell.ranks, cell.mode, cells.kind_of(cell.collective)) == (ranks, mode, kind)
                }
                if not ratios:
                    continue
                worst = min(ratios, key=lambda cell: ratios[cell])
                alike = [value for cell, value in like[base, subject].items() if cell in ratios]
                table.add_row(
                    str(ranks),
                    mode,
                    kind,
                    f"{base}/{subject}",
                    f"{cells.geometric_mean(ratios.values()):.2f}",
                    f"{cells.geometric_mean(alike):.2f}" if alike else "-",
                    f"{worst.collective} {cells.size_text(worst.bytes)}: {_ratio(ratios[worst])}",
                    str(sum(value < 1 for value in ratios.values())),
                )
    return table if table.row_count else None


def figures(rows: Sequence[FigureRow], mark: str = "") -> Table | None:
    """Programs that cannot be helped: rates, and how much of the rate without us remains with us."""
    values: dict[tuple[str, int, str], dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    for row in rows:
        values[row.program, row.ranks, row.unit][row.variant].append(row.value)
    if not values:
        return None
    variants = list(dict.fromkeys(row.variant for row in rows))
    table = _titled("programs that cannot be helped: rates, larger is better", mark)
    for column in ("program", "ranks", *variants, *(f"{s}/mpi" for s in subjects(variants))):
        table.add_column(column, justify="left" if column == "program" else "right")
    for (program, ranks, unit), by_variant in values.items():
        shown = []
        for variant in variants:
            rates = by_variant.get(variant)
            shown.append(f"{statistics.median(rates):.5g} {unit}" if rates else "-")
        base = by_variant.get(cells.BASELINE)
        for subject in subjects(variants):
            rates = by_variant.get(subject)
            shown.append(f"{statistics.median(rates) / statistics.median(base):.3f}" if rates and base else "-")
        table.add_row(program, str(ranks), *shown)
    return table


def explained(rows: Sequence[Row], figures: Sequence[FigureRow]) -> Iterator[str]:
    """What the columns above mean, of those that were shown."""
    variants = list(dict.fromkeys(row.variant for row in rows))
    modes = {row.mode for row in rows}
    if rows:
        yield "median us, quartiles: of one call, over all repetitions of all rounds; the slowest rank's time counts"
    pairs = [(base, subject) for subject in subjects(variants) for base in baselines(variants)]
    if pairs:
        base, subject = pairs[0]
        yield f"{base}/{subject}: median time of {base} divided by that of {subject}; above 1, {subject} is faster"
        if any(row.copy_speed for row in rows):
            yield f"{LIKE}: the same, only times compared that were taken while the node's memory was as fast"
        if any(row.bytes <= SMALL for row in rows):
            yield f"ns: by how much a call of {subject} takes longer, median over the repetitions"
    if pairs and any(cells.memcpy_usec(row) for row in rows):
        yield f"{TIMES_MEMCPY}: how many times as long {pairs[0][1]} takes as plain copies of the bytes it must move,"
        yield "  by all ranks at once, the faster of memcpy() and stores past the caches, timed right before and after;"
        yield "  a yardstick and no bound: what a cache still holds moves faster (below 1)"
    meanings = {
        "off-cache": "buffers are written by their owner, then leave the caches before they are sent",
        "warm": "the same few buffers again and again, in the caches",
        "same-process": "calls through onecopy and past it in turns, within one process",
    }
    yield from (f"{mode}: {meaning}" for mode, meaning in meanings.items() if mode in modes)
    if figures:
        yield f"rates: {cells.SUBJECT}/mpi is how much of the MPI's rate {cells.SUBJECT} leaves; above 1, it gains"


def write_summary(rows: Sequence[Row], path: Path) -> None:
    """The medians, for documents and other programs: one line a cell and variant."""
    spreads = cells.spreads(rows)
    over_memcpy = cells.memcpy_ratios(rows)
    with path.open("w", newline="") as file:
        out = csv.writer(file, lineterminator="\n")
        out.writerow(
            [
                "collective",
                "bytes",
                "ranks",
                "mode",
                "variant",
                "median",
                "q1",
                "q3",
                "rows",
                "mpi_ratio",
                "memcpy_ratio",
            ]
        )
        for cell in _cells(spreads):
            base = spreads.get(cells.BASELINE, {}).get(cell)
            for variant, by_cell in spreads.items():
                if (one := by_cell.get(cell)) is None:
                    continue
                numbers = [f"{one.median:.4f}", f"{one.low:.4f}", f"{one.high:.4f}", one.count]
                compared = f"{cells.ratio(base, one):.4f}" if base else ""
                beside = over_memcpy.get(variant, {}).get(cell)
                out.writerow([*cell, variant, *numbers, compared, f"{beside.median:.4f}" if beside else ""])
