# SPDX-License-Identifier: BSD-3-Clause
"""onecopy on programs that know nothing of it: hpcc, and all-pairs shortest paths over Europe's airways.

Run by `make demo`. Every result is verified; ends with 1 when one is wrong.
"""

from __future__ import annotations

import csv
import sys
import time
from pathlib import Path
from statistics import median

import asp
import hpcc
import plot
import system
from program import DemoError
from rich.console import Console
from rich.progress import BarColumn, Progress, SpinnerColumn, TaskID, TextColumn, TimeElapsedColumn
from rich.table import Table

ROUNDS = 3
# On a slow or busy machine fewer rounds have to do: seconds after which no new one begins.
HPCC_BUDGET_S = 40
TOTAL_BUDGET_S = 170
WITH = {False: "MPI alone", True: "with onecopy"}

console = Console()


def progress() -> Progress:
    return Progress(
        SpinnerColumn(),
        TextColumn("{task.description}"),
        BarColumn(bar_width=24),
        TextColumn("{task.fields[at]}"),
        TimeElapsedColumn(),
        console=console,
    )


def write_csv(path: Path, columns: list[str], rows: list[list[object]]) -> None:
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(columns)
        writer.writerows(rows)


def speedup(before: float, after: float, more_is_better: bool = False) -> float:
    if min(before, after) <= 0:
        return float("nan")
    return after / before if more_is_better else before / after


def demo_hpcc(path: Path) -> None:
    console.rule("hpcc, as Debian ships it")
    runs: dict[bool, list[dict[str, float]]] = {False: [], True: []}
    calls: dict[str, int] = {}
    began = time.monotonic()
    with progress() as bar:
        # The order changes, so that neither always comes second.
        for onecopy in (False, True, True, False):
            if len(runs[False]) == len(runs[True]) and time.monotonic() - began > HPCC_BUDGET_S:
                break
            task = bar.add_task(f"hpcc, {WITH[onecopy]}", total=None, at="")

            def show(part: str, task: TaskID = task) -> None:
                bar.update(task, at=part)

            figures, served = hpcc.run_hpcc(onecopy=onecopy, show=show)
            bar.update(task, total=1, completed=1, at="verified")
            runs[onecopy].append(figures)
            calls = served if onecopy else calls
    table = Table("figure", "unit", *WITH.values(), "speed-up")
    rows: list[list[object]] = []
    for key, (unit, more) in hpcc.FIGURES.items():
        before, after = (median(run[key] for run in runs[onecopy]) for onecopy in (False, True))
        ratio = speedup(before, after, more)
        rows.append([key, unit, before, after, ratio, len(runs[True])])
        table.add_row(key, unit, f"{before:.4g}", f"{after:.4g}", f"{ratio:.2f}x")
    write_csv(path, ["figure", "unit", "plain", "onecopy", "speedup", "runs"], rows)
    console.print(table)
    console.print("hpcc verified its own results in every run: HPL, PTRANS, RandomAccess, DGEMM, FFT.")
    console.print(f"onecopy served: {listed(calls)}. Means of {len(runs[True])}: a few per cent are noise.")


def listed(calls: dict[str, int]) -> str:
    named = [f"{count:,} x {name}" for name, count in sorted(calls.items()) if count]
    return ", ".join(named) if named else "none of its calls"


def demo_asp(path: Path, until: float) -> None:
    console.rule("all-pairs shortest paths")
    program, graph = asp.prepare()
    runs: list[tuple[bool, asp.Result]] = []
    with progress() as bar:
        for turn in range(ROUNDS):
            if runs and time.monotonic() + 2 * runs[-1][1].total > until:
                break
            for onecopy in (False, True) if turn % 2 == 0 else (True, False):
                task = bar.add_task(f"round {turn + 1}, {WITH[onecopy]}", total=100, at="")

                def show(percent: int, task: TaskID = task) -> None:
                    bar.update(task, completed=percent)

                result = asp.run_asp(program, graph, onecopy=onecopy, show=show)
                bar.update(task, completed=100, at=f"{result.total:.2f} s")
                runs.append((onecopy, result))
    first = runs[0][1]
    for onecopy, result in runs:
        if (result.checksum, result.farthest) != (first.checksum, first.farthest):
            raise DemoError(f"a run {WITH[onecopy]} computed other distances: {result.checksum}, not {first.checksum}")
        if onecopy and not any(result.served.values()):
            raise DemoError("onecopy served none of asp's calls; `./onecopy doctor` tells what it can do here")
    columns = ["onecopy", "total_s", "bcast_s", "wait_s", "nodes", "row_bytes", "checksum"]
    write_csv(
        path,
        columns,
        [[int(o), r.total, r.bcast, r.wait, r.nodes, r.row_bytes, r.checksum] for o, r in runs],
    )
    print_asp(runs, graph)


def print_asp(runs: list[tuple[bool, asp.Result]], graph: Path) -> None:
    first = runs[0][1]
    names = asp.point_names(graph)
    a, b, metres = first.farthest
    console.print(
        f"{first.nodes:,} points, {first.edges:,} airway segments; {first.nodes:,} broadcasts of {first.row_bytes:,} "
        f"bytes. Farthest apart: {names[a]} and {names[b]}, {metres / 1000:,.0f} km along airways."
    )
    table = Table(f"seconds, median of {len(runs) // 2}", *WITH.values(), "speed-up")
    for label, column in (("total", "total"), ("in broadcasts", "bcast"), ("waiting for each other", "wait")):
        before = median(getattr(r, column) for o, r in runs if not o)
        after = median(getattr(r, column) for o, r in runs if o)
        ratio = f"{speedup(before, after):.2f}x" if column != "wait" else ""
        table.add_row(label, f"{before:.3f}", f"{after:.3f}", ratio)
    console.print(table)
    console.print(f"All {len(runs)} runs computed the same distances: checksum {first.checksum}.")
    served = next(r.served for o, r in runs if o)
    console.print(f"onecopy served: {listed(served)}.")


def main() -> int:
    began = time.monotonic()
    system.OUT.mkdir(exist_ok=True)
    table = Table.grid(padding=(0, 2))
    for name, version in system.versions().items():
        table.add_row(name, version or "not found")
    console.print(table)
    console.print(f"{system.ranks()} ranks a run.")
    if system.busy():
        console.print("Other programs keep this machine busy: the times below will be unsteady.", style="yellow")
    console.print()
    try:
        hpcc_csv, asp_csv = system.OUT / "demo-hpcc.csv", system.OUT / "demo-asp.csv"
        demo_hpcc(hpcc_csv)
        demo_asp(asp_csv, began + TOTAL_BUDGET_S)
        picture = system.OUT / "demo.png"
        plot.draw(asp_csv, hpcc_csv, picture)
    except DemoError as error:
        console.print(f"\ndemo failed: {error}", style="bold red", markup=False, highlight=False)
        return 1
    except KeyboardInterrupt:
        console.print("\ninterrupted")
        return 130
    where = picture.relative_to(system.ROOT).parent
    console.print(f"\nPlot: {where / picture.name}, drawn from {where / asp_csv.name} and {where / hpcc_csv.name}.")
    console.print(f"Done in {time.monotonic() - began:.0f} s.")
    return 0


if __name__ == "__main__":
    sys.exit(main())
