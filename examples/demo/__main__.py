# SPDX-License-Identifier: BSD-3-Clause
"""onecopy on programs that know nothing of it: hpcc, all-pairs shortest paths over Europe's airways, and a wave.

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
import waves
from example import Example, Run, build, check, run_example
from program import DemoError, listed
from rich.console import Console
from rich.progress import BarColumn, Progress, SpinnerColumn, TaskID, TextColumn, TimeElapsedColumn
from rich.table import Table

ROUNDS = 3
# On a slow or busy machine fewer rounds have to do: seconds after which no new one begins.
HPCC_BUDGET_S = 40
EXAMPLE_BUDGETS_S = (130, 170)  # from the demo's beginning
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


def demo_example(example: Example, until: float) -> None:
    console.rule(example.title)
    build(example)
    runs: list[Run] = []
    with progress() as bar:
        for turn in range(ROUNDS):
            if runs and time.monotonic() + 2 * runs[-1].seconds("total_s") > until:
                break
            for onecopy in (False, True) if turn % 2 == 0 else (True, False):
                task = bar.add_task(f"round {turn + 1}, {WITH[onecopy]}", total=100, at="")

                def show(percent: int, task: TaskID = task) -> None:
                    bar.update(task, completed=percent)

                one = run_example(example, onecopy=onecopy, show=show)
                bar.update(task, completed=100, at=f"{one.seconds('total_s'):.2f} s")
                runs.append(one)
    check(example, runs)
    write_csv(example.table, example.columns(), [example.row(one) for one in runs])
    print_example(example, runs)


def print_example(example: Example, runs: list[Run]) -> None:
    console.print(example.describe(runs[0]))
    table = Table(f"seconds, median of {len(runs) // 2}", *WITH.values(), "speed-up")
    for each in example.times:
        before, after = (
            median(one.seconds(each.key) for one in runs if one.onecopy == onecopy) for onecopy in (False, True)
        )
        ratio = f"{speedup(before, after):.2f}x" if each.compared else ""
        table.add_row(each.label, f"{before:.3f}", f"{after:.3f}", ratio)
    console.print(table)
    console.print(f"All {len(runs)} runs have the same result: checksum {runs[0].values['checksum']}.")
    console.print(example.moved(next(one for one in runs if one.onecopy)))


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
        hpcc_csv = system.OUT / "demo-hpcc.csv"
        demo_hpcc(hpcc_csv)
        examples = [asp.example(), waves.example()]
        for example, budget in zip(examples, EXAMPLE_BUDGETS_S, strict=True):
            demo_example(example, began + budget)
        picture = system.OUT / "demo.png"
        plot.draw(examples, hpcc_csv, picture)
    except DemoError as error:
        console.print(f"\ndemo failed: {error}", style="bold red", markup=False, highlight=False)
        return 1
    except KeyboardInterrupt:
        console.print("\ninterrupted")
        return 130
    where = picture.relative_to(system.ROOT).parent
    tables = ", ".join(str(where / table.name) for table in (hpcc_csv, *(example.table for example in examples)))
    console.print(f"\nPlot: {where / picture.name}, drawn from {tables}.")
    console.print(f"Done in {time.monotonic() - began:.0f} s.")
    return 0


if __name__ == "__main__":
    sys.exit(main())
