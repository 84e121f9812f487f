# SPDX-License-Identifier: BSD-3-Clause
"""`onecopy bench`: the same work with and without onecopy, and on other MPIs, alternated in one run.

A host's speed drifts (neighbours, clocks), so every collective is run by all variants one right after the other, in
the order A B in even rounds and B A in odd ones, and only medians over rounds are compared. How a single time is
taken is told in bench/programs/collbench.c.
"""

from __future__ import annotations

import argparse
import contextlib
import csv
import os
import shlex
import signal
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from types import FrameType
from typing import NoReturn

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

from onecopy import cells, install, machine, module, peers, programs, run, schedule, tables
from onecopy.cells import FigureRow, Row
from onecopy.results import Results, ResultsError
from onecopy.results import directory as results_directory
from onecopy.schedule import Clock, Task
from onecopy.variant import MPIS, BenchError, Variant, choose_variants, rival_list

COLLECTIVES = ("bcast", "scatter", "gather", "allgather", "alltoall", "reduce", "allreduce")
OF_BLOCKS = ("scatterv", "gatherv", "alltoallv")
STRIDED = ("strided_allgather", "alltoallw")
NEIGHBORS = ("neighbor_alltoall", "neighbor_alltoallw")
SUMS = ("reduce_scatter", "reduce_scatter_block", "scan", "exscan")
OTHERS = ("allgatherv", *SUMS, *OF_BLOCKS, *STRIDED, *NEIGHBORS, "barrier", *cells.MESSAGES)
SIZES = "16K,64K,256K,1M,4M"
MESSAGE_SIZES = "4K,16K,64K,256K,1M,4M,16M"
SMALL_SIZES = "8,64,512,2K"
FIRST_USE = ((20000, 32 << 10), (500, 4 << 20))
UNHELPED = ("stream", "randomaccess", "mallocheavy", "forks", "p2p")
KINDS = ("collectives", "p2p", "small", "overhead", "first-use", "programs", "region")
MEMORIES = ("heap", "static", "stack", "mmap")  # those of bench/programs/arena.c
MAX_SIZES = 64  # MAX_LIST of bench/programs/options.h
SAME_PROCESS = "same-process"  # mode of the rows of "overhead"
REGION_SIZES = "64,4K,64K,1M,4M"

console = Console(stderr=True)


@dataclass
class Settings:
    collectives: list[str]
    passed: list[str]  # those whose overhead is measured
    sizes: str
    messages: list[str]
    message_sizes: str
    seconds: float
    repetitions: int
    rounds: int
    warm: bool
    memory: str
    timing: str
    cache: int
    limit: float


def name_list(known: Sequence[str]) -> Callable[[str], list[str]]:
    def parse(text: str) -> list[str]:
        names = [name for name in text.split(",") if name]
        if unknown := [name for name in names if name not in known]:
            raise argparse.ArgumentTypeError(f"no {unknown[0]!r}; there are {', '.join(known)}")
        return names

    return parse


def size_list(text: str) -> str:
    if len(text.split(",")) > MAX_SIZES:
        raise argparse.ArgumentTypeError(f"more than {MAX_SIZES} sizes")
    for size in text.split(","):
        if (count := run.byte_count(size)) == 0 or count % 4:
            raise argparse.ArgumentTypeError(f"{size!r}: sizes are multiples of 4 bytes")
    return text


def cache_bytes(text: str) -> int:
    if not (count := run.byte_count(text)):
        raise argparse.ArgumentTypeError(f"{text!r} is no number of bytes such as 32M")
    return count


def rank_list(text: str) -> list[int]:
    try:
        ranks = [int(word) for word in text.split(",")]
    except ValueError:
        ranks = []
    if not ranks or min(ranks) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is no list of numbers of ranks such as 2,4")
    return ranks


def positive(text: str) -> int:
    if not text.isdigit() or int(text) == 0:
        raise argparse.ArgumentTypeError(f"{text!r} is no number above 0")
    return int(text)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--what",
        type=name_list(KINDS),
        default=["collectives"],
        metavar="LIST",
        help=f"what to measure, of {', '.join(KINDS)} (default: collectives)",
    )
    parser.add_argument("--ranks", type=rank_list, default=[2, 4], metavar="LIST", help="default: 2,4")
    parser.add_argument(
        "--collectives",
        type=name_list((*COLLECTIVES, *OTHERS)),
        metavar="LIST",
        help=f"default: {', '.join(COLLECTIVES)}; overhead: {', '.join(OF_BLOCKS)}, too; "
        f"p2p: {', '.join(cells.MESSAGES)}",
    )
    parser.add_argument(
        "--sizes", type=size_list, metavar="LIST", help=f"default: {SIZES}; small: {SMALL_SIZES}; p2p: {MESSAGE_SIZES}"
    )
    parser.add_argument("--rounds", type=positive, help="how often each variant is run (default: 6)")
    parser.add_argument("--quick", action="store_true", help="three rounds of three sizes, shorter each")
    parser.add_argument("--warm", action="store_true", help="buffers stay in the caches (default: off-cache)")
    parser.add_argument(
        "--memory",
        choices=MEMORIES,
        default="heap",
        help="where the buffers of collectives and messages are: malloc's (default), static data, the main thread's"
        " stack, or an anonymous mapping",
    )
    parser.add_argument(
        "--cache",
        type=cache_bytes,
        metavar="BYTES",
        help="what the last level caches hold together, where the system says more than this machine has of them:"
        " buffers are four times that (units K, M, G)",
    )
    parser.add_argument(
        "--timing", choices=["loop", "call"], default="loop", help="a loop of calls, or each after a barrier"
    )
    parser.add_argument(
        "--mpi",
        choices=MPIS,
        default="mpi",
        help="the MPI that onecopy is measured on: the one in PATH, which is the default, or one that --peer has"
        " installed; it then is what --against calls mpi",
    )
    parser.add_argument(
        "--against",
        type=rival_list,
        default=["mpi"],
        metavar="LIST",
        help=f"what to run beside onecopy, of {', '.join(MPIS)}, or the directory of another build"
        " of onecopy (default: mpi, the one that onecopy is measured on)",
    )
    parser.add_argument(
        "--peer",
        action="append",
        default=[],
        choices=list(peers.PACKAGES),
        help="install this MPI from PyPI into the cache if it is not there, and run beside it",
    )
    parser.add_argument(
        "--mech",
        type=name_list(run.MECHANISMS),
        default=[],
        metavar="LIST",
        help="also run onecopy with each of these mechanisms alone",
    )
    parser.add_argument("--output", type=Path, metavar="DIR", help="default: ./onecopy-out/DATE")


# ---- running one program ------------------------------------------------------------------------------------------


def parse_rows(text: str, number: int, variant: str) -> list[Row]:
    """collbench's and firstuse's lines. A line cut off by a killed program is left out, and what a launcher prints."""
    rows = []
    lines = text.splitlines()
    start = next((at for at, line in enumerate(lines) if line.startswith("collective,")), len(lines))
    for values in csv.DictReader(lines[start:]):
        with contextlib.suppress(cells.BrokenError):
            rows.append(cells.convert(Row, {"copy_speed": "0", **values, "round": str(number), "variant": variant}))
    return rows


def parse_figures(text: str, number: int, variant: str, program: str, ranks: int) -> list[FigureRow]:
    """The lines "PROGRAM,VALUE,UNIT"."""
    rows = []
    for line in text.splitlines():
        name, _, rest = line.partition(",")
        value, _, unit = rest.partition(",")
        if name == program and unit:
            with contextlib.suppress(ValueError):
                rows.append(FigureRow(number, variant, name, ranks, float(value), unit))
    return rows


class Bench:
    """One run into one directory."""

    def __init__(self, variants: list[Variant], settings: Settings, results: Results) -> None:
        self.variants = variants
        self.settings = settings
        self.results = results
        self.troubles: dict[str, int] = {}

    def order(self, number: int) -> list[Variant]:
        return self.variants if number % 2 == 0 else self.variants[::-1]

    def _trouble(self, what: str) -> None:
        self.troubles[what] = self.troubles.get(what, 0) + 1

    def _output(self, variant: Variant, ranks: int, words: Sequence[str | Path], limit: float) -> str:
        env = {**variant.mpi.environment(ranks), **variant.env}
        text, trouble = programs.output_of(variant.mpi.command(ranks, *words), env, limit)
        if trouble:
            named = " ".join(Path(str(w)).name for w in words[:2])
            self._trouble(f"{variant.name}, {ranks} ranks, {named}: {trouble}")
        return text

    def _keep_times(self, rows: list[Row]) -> None:
        for row in rows:
            if row.errors:
                self._trouble(f"{row.variant}: WRONG DATA in {row.collective} of {row.bytes} bytes, {row.ranks} ranks")
        self.results.add_times(rows)

    def _collbench(self, variant: Variant, ranks: int, collective: str, sizes: str, *flags: str) -> str:
        s = self.settings
        words: list[str | Path] = [
            programs.find("collbench", variant.mpi),
            f"--collectives={collective}",
            f"--sizes={sizes}",
            f"--seconds={s.seconds}",
            f"--reps={s.repetitions}",
            f"--cache={s.cache}",
            f"--timing={s.timing}",
            f"--memory={s.memory}",
            *flags,
        ]
        return self._output(variant, ranks, words, s.limit)

    def times(self, variant: Variant, ranks: int, number: int, collective: str, sizes: str, warm: bool) -> None:
        text = self._collbench(variant, ranks, collective, sizes, *(["--warm"] if warm else []))
        self._keep_times(parse_rows(text, number, variant.name))

    def overhead(self, variant: Variant, ranks: int, number: int, collective: str, sizes: str) -> None:
        """Calls through us and beneath us, in turns within one process: two processes differ by more."""
        text = self._collbench(variant, ranks, collective, sizes, "--warm", "--beneath")
        rows = parse_rows(text, number, variant.name)
        self._keep_times(
            [
                replace(row, mode=SAME_PROCESS, variant=cells.BASELINE if row.mode == "beneath" else row.variant)
                for row in rows
            ]
        )

    def first_use(self, variant: Variant, ranks: int, number: int, count: int, size: int, way: str) -> None:
        words: list[str | Path] = [programs.find("firstuse", variant.mpi), str(count), str(size), way]
        text = self._output(variant, ranks, words, 10 * self.settings.limit)
        self._keep_times(parse_rows(text, number, variant.name))

    def figure(self, variant: Variant, ranks: int, number: int, program: str) -> None:
        text = self._output(variant, ranks, [programs.find(program, variant.mpi)], self.settings.limit)
        self.results.add_figures(parse_figures(text, number, variant.name, program, ranks))

    def region(self, number: int, mechanism: str, direction: str, sizes: str) -> None:
        """Without any MPI: two processes of the library's own API."""
        program = install.find("regionbench")
        if program is None:
            raise programs.BuildError("regionbench is missing: a checkout has it, once `make` has built it")
        counts = [str(run.byte_count(size)) for size in sizes.split(",")]
        s = self.settings
        words = [str(program), mechanism, direction, str(s.seconds), str(s.cache), *counts]
        env = {k: v for k, v in os.environ.items() if k not in ("LD_PRELOAD", "ONECOPY_MECH")}
        text, trouble = programs.output_of(words, env, s.limit)
        if trouble:
            self._trouble(f"regionbench {mechanism} {direction}: {trouble}")
        self._keep_times(parse_rows(text, number, f"{cells.SUBJECT}-{mechanism}"))


# ---- what to run ----------------------------------------------------------------------------------------------------


def round_tasks(bench: Bench, what: Sequence[str], ranks: int, number: int, small: str) -> list[Task]:
    """One round: every variant does each piece of work, one right after the other."""
    s = bench.settings
    tasks: list[Task] = []

    def alternate(title: str, seconds: float, do: Callable[..., None], *details: object) -> None:
        tasks.extend(
            Task(f"{ranks} ranks, {title}, {variant.name}", partial(do, variant, ranks, number, *details), seconds)
            for variant in bench.order(number)
        )

    def expected(sizes: str, warm: bool) -> float:
        return schedule.collective_seconds(sizes, s.seconds, s.repetitions, warm)

    if "collectives" in what:
        for name in s.collectives:
            alternate(name, expected(s.sizes, s.warm), bench.times, name, s.sizes, s.warm)
    if "p2p" in what:
        for name in s.messages:
            alternate(name, expected(s.message_sizes, s.warm), bench.times, name, s.message_sizes, s.warm)
    if "small" in what:
        for name in s.collectives:
            alternate(f"small {name}", expected(small, True), bench.times, name, small, True)
    if "overhead" in what:
        tasks.extend(
            Task(
                f"{ranks} ranks, overhead {name}",
                partial(bench.overhead, variant, ranks, number, name, small),
                2 * expected(small, True),
            )
            for name in s.passed
            for variant in bench.order(number)
            if cells.is_subject(variant.name)
        )
    if "first-use" in what:
        for count, size in FIRST_USE:
            for way in ("free", "keep"):
                alternate("first use", schedule.FIRST_USE, bench.first_use, count, size, way)
    if "programs" in what:
        for name in UNHELPED:
            alternate(name, schedule.FIGURE, bench.figure, name)
    return tasks


def region_tasks(bench: Bench, number: int, sizes: str, mechanisms: Sequence[str]) -> list[Task]:
    order = mechanisms if number % 2 == 0 else mechanisms[::-1]
    seconds = schedule.REGION_START + len(sizes.split(",")) * bench.settings.seconds
    return [
        Task(f"region {direction}, {mechanism}", partial(bench.region, number, mechanism, direction, sizes), seconds)
        for direction in ("get", "put")
        for mechanism in order
    ]


def all_tasks(bench: Bench, args: argparse.Namespace) -> list[Task]:
    # --sizes is for collectives; for the other kinds when they are measured alone.
    alone = args.sizes if "collectives" not in args.what else None
    tasks: list[Task] = []
    # Rounds outermost: a drift of the host then meets every number of ranks and every variant.
    for number in range(bench.settings.rounds):
        for ranks in args.ranks:
            tasks += round_tasks(bench, args.what, ranks, number, alone or SMALL_SIZES)
    if "region" in args.what:
        for number in range(bench.settings.rounds):
            tasks += region_tasks(bench, number, alone or REGION_SIZES, args.mech or run.mechanisms_here())
    return tasks


def describe(variants: Sequence[Variant], args: argparse.Namespace) -> dict[str, object]:
    facts = machine.describe()
    facts["variants"] = {v.name: v.mpi.version() for v in variants}
    facts["settings"] = {k: v for k, v in vars(args).items() if k not in ("output", "command")}
    facts["command"] = shlex.join(["onecopy", *sys.argv[1:]])
    facts["environment"] = {k: v for k, v in os.environ.items() if k.startswith("ONECOPY")}
    return facts


def settings_of(args: argparse.Namespace) -> Settings:
    quick = args.quick
    cache = args.cache or machine.last_level_bytes()
    return Settings(
        collectives=args.collectives or list(COLLECTIVES),
        passed=args.collectives or [*COLLECTIVES, *OF_BLOCKS],
        sizes=args.sizes or ("16K,256K,4M" if quick else SIZES),
        messages=[name for name in args.collectives or cells.MESSAGES if name in cells.MESSAGES],
        message_sizes=args.sizes or ("64K,1M" if quick else MESSAGE_SIZES),
        seconds=0.04 if quick else 0.1,
        repetitions=1 if quick else 2,
        rounds=args.rounds or (3 if quick else 6),
        warm=args.warm,
        memory=args.memory,
        timing=args.timing,
        cache=cache,
        limit=60.0 * max(1.0, cache / (128 << 20)),  # buffers are a multiple of it, and have to be made
    )


def show(bench: Bench) -> None:
    results = bench.results
    mark = machine.busy(results.facts)
    out = Console() if sys.stdout.isatty() else Console(width=200)
    for table in tables.times(results.rows, mark):
        out.print(table)
    for each in (tables.summary(results.rows, mark), tables.figures(results.figures, mark)):
        if each:
            out.print(each)
    for ranks, speed in cells.copy_speeds(results.rows).items():
        low, high = speed.low / 1e9, speed.high / 1e9
        out.print(f"memcpy, {ranks} processes at once: {speed.median / 1e9:.1f} GB/s ({low:.1f}-{high:.1f})")
    for line in tables.explained(results.rows, results.figures):
        out.print(line, style="dim", highlight=False, soft_wrap=True)
    if mark and (results.rows or results.figures):
        run.note(f"{mark}: these figures say little; repeat them when it is quiet")
    for trouble, times in bench.troubles.items():
        console.print(f"[red]{times} x[/] {trouble}", highlight=False, soft_wrap=True)


def say_where(results: Results) -> None:
    if results.trouble:
        run.note(results.trouble)
    elif not results.rows and not results.figures:
        run.note(f"nothing was measured; {results.directory} holds no more than machine.json")
    elif cells.drawn(results.rows):
        run.note(f"written to {results.directory}; draw it with: onecopy plot {shlex.quote(str(results.directory))}")
    else:
        run.note(f"written to {results.directory}")


def interrupted_by(number: int, _frame: FrameType | None) -> NoReturn:
    """SIGTERM and SIGHUP end a run as Ctrl-C does: what was measured is kept, and no program goes on without us."""
    raise KeyboardInterrupt(signal.Signals(number).name)


def impossible(args: argparse.Namespace) -> str:
    """Why there would be nothing to measure, "" when there is."""
    alone = sorted({"collectives", "p2p", "small", "first-use"} & set(args.what))
    if 1 in args.ranks and alone:
        return f"--ranks 1: one rank has no peer to copy from, which leaves nothing to measure for {', '.join(alone)}"
    for name in args.mech:
        if name not in run.mechanisms_here():
            return f"--mech {name}: {module.DEVICE} is not here, so nothing can be measured: load the kernel module"
    if run.switched_off("ONECOPY") and args.what != ["region"]:
        return f"ONECOPY={os.environ['ONECOPY']} is set: onecopy would be measured doing nothing; unset it"
    return ""


def perform(tasks: Sequence[Task]) -> None:
    """Says beforehand how long it will take, and on the way what is left."""
    clock = Clock(tasks)
    run.note(f"{len(tasks)} runs, about {schedule.duration(clock.left())}")
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TextColumn("{task.fields[left]}"))
    with Progress(*columns, console=console, disable=not console.is_terminal) as progress:
        shown = progress.add_task("", total=len(tasks), left="")
        for done, task in enumerate(tasks):
            left = f"{schedule.duration(clock.left())} left"
            progress.update(shown, description=task.title, left=left)
            if not console.is_terminal:  # where no bar is drawn
                run.note(f"{done + 1} of {len(tasks)}, {left}: {task.title}")
            task.do()
            clock.done(task)
            progress.advance(shown)
        progress.update(shown, left="")


def main(args: argparse.Namespace) -> int:
    for ending in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(ending, interrupted_by)
    if why := impossible(args):
        run.note(why)
        return 2
    try:
        variants = choose_variants(args, console) if args.what != ["region"] else []
        results = Results(results_directory(args.output), describe(variants, args))
    except (BenchError, ResultsError, peers.MissingError, programs.BuildError) as error:
        run.note(str(error))
        return 1
    if why := machine.busy(results.facts):
        run.note(f"{why}: figures of now will say little")
    bench = Bench(variants, settings_of(args), results)
    failed = ""
    interrupted = False
    others = machine.OtherWork()
    if args.memory == "stack":
        programs.raise_stack_limit(bench.settings.cache)
    try:
        perform(all_tasks(bench, args))
    except programs.BuildError as error:
        failed = str(error)
    except OSError as error:  # what was measured so far is not lost for it
        failed = f"{error.filename or 'the next program cannot be run'}: {error.strerror}"
    except KeyboardInterrupt:
        interrupted = True
    results.finish({"other_work": others.processors()})
    show(bench)
    if failed:
        run.note(failed)
    say_where(results)
    if interrupted:
        return 130
    return 1 if failed or bench.troubles or results.trouble or not (results.rows or results.figures) else 0
