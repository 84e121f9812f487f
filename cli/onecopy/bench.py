# SPDX-License-Identifier: BSD-3-Clause
"""`onecopy bench`: the same work with and without onecopy, and on other MPIs, alternated in one run.

A host's speed drifts (neighbours, clocks), so every collective is run by all variants one right after the other, in
the order A B in even rounds and B A in odd ones, and only medians over rounds are compared. How a single time is
taken is told in bench/programs/collbench.c.
"""

from __future__ import annotations

import argparse
import csv
import datetime
import io
import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from types import FrameType
from typing import NoReturn

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from onecopy import cells, install, machine, mpi, peers, programs, run, tables
from onecopy.cells import FigureRow, Row

COLLECTIVES = ("bcast", "scatter", "gather", "allgather", "alltoall", "reduce", "allreduce")
OTHERS = ("reduce_scatter", "barrier", "pingpong")
SIZES = "16K,64K,256K,1M,4M"
SMALL_SIZES = "8,64,512,4K"
FIRST_USE = ((20000, 32 << 10), (500, 4 << 20))
UNHELPED = ("stream", "randomaccess", "mallocheavy", "forks", "p2p")
KINDS = ("collectives", "small", "overhead", "first-use", "programs", "region")
SAME_PROCESS = "same-process"  # mode of the rows of "overhead"
REGION_SIZES = "64,4K,64K,1M,4M"

console = Console(stderr=True)


class BenchError(RuntimeError):
    """Nothing to measure with; the text says what to do."""


@dataclass(frozen=True)
class Variant:
    """One way to run a program: an MPI, and the environment that makes it onecopy's or not."""

    name: str
    mpi: peers.Mpi
    env: Mapping[str, str] = field(default_factory=dict)


@dataclass
class Settings:
    collectives: list[str]
    sizes: str
    seconds: float
    repetitions: int
    rounds: int
    warm: bool
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
    for size in text.split(","):
        if (count := run.byte_count(size)) == 0 or count % 4:
            raise argparse.ArgumentTypeError(f"{size!r}: sizes are multiples of 4 bytes")
    return text


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
    against = ("mpi", *peers.PACKAGES)
    parser.add_argument(
        "--what",
        type=name_list(KINDS),
        default=["collectives"],
        metavar="LIST",
        help=f"what to measure, of {', '.join(KINDS)} (default: collectives)",
    )
    parser.add_argument("--ranks", type=rank_list, default=[2, 4], metavar="LIST", help="default: 2,4")
    parser.add_argument("--collectives", type=name_list((*COLLECTIVES, *OTHERS)), metavar="LIST", help="default: 7")
    parser.add_argument("--sizes", type=size_list, metavar="LIST", help=f"default: {SIZES}; small: {SMALL_SIZES}")
    parser.add_argument("--rounds", type=positive, help="how often each variant is run (default: 6)")
    parser.add_argument("--quick", action="store_true", help="three rounds of three sizes, shorter each")
    parser.add_argument("--warm", action="store_true", help="buffers stay in the caches (default: off-cache)")
    parser.add_argument(
        "--timing", choices=["loop", "call"], default="loop", help="a loop of calls, or each after a barrier"
    )
    parser.add_argument(
        "--against",
        type=name_list(against),
        default=["mpi"],
        metavar="LIST",
        help=f"what to run beside onecopy, of {', '.join(against)} (default: mpi, the one in PATH)",
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
    parser.add_argument("--output", type=Path, metavar="DIR", help="default: bench/results/DATE, or ./onecopy-out/DATE")


# ---- running one program ------------------------------------------------------------------------------------------


def finish(process: subprocess.Popen[bytes]) -> None:
    """Ends a job that ran past its limit: the launcher cleans up after SIGTERM, its session goes with SIGKILL."""
    process.terminate()
    try:
        process.wait(timeout=5)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def output_of(argv: Sequence[str], env: Mapping[str, str], limit: float) -> tuple[str, str]:
    """What a program printed, and why it did not end well ("" if it did). What it printed before stays."""
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        process = subprocess.Popen(
            argv, env=env, stdin=subprocess.DEVNULL, stdout=out, stderr=err, start_new_session=True
        )
        trouble = ""
        try:
            status = process.wait(timeout=limit)
        except subprocess.TimeoutExpired:
            finish(process)
            trouble = f"ran past its limit of {limit:.0f} s"
        except BaseException:
            finish(process)
            raise
        else:
            if status:
                err.seek(0)
                lines = err.read().decode(errors="replace").strip().splitlines()
                trouble = f"ended with status {status}: {next((x for x in lines if x.strip('- ')), 'no message')}"
        out.seek(0)
        return out.read().decode(errors="replace"), trouble


def parse_rows(text: str, number: int, variant: str) -> list[Row]:
    """collbench's and firstuse's lines. A line cut off by a killed program is left out."""
    return [
        cells.convert(Row, {"copy_speed": "0", **values, "round": str(number), "variant": variant})
        for values in csv.DictReader(io.StringIO(text))
        if None not in values and None not in values.values()
    ]


class Bench:
    """One run into one directory."""

    def __init__(self, variants: list[Variant], settings: Settings, output: Path) -> None:
        self.variants = variants
        self.settings = settings
        self.output = output
        self.rows: list[Row] = []
        self.figures: list[FigureRow] = []
        self.troubles: dict[str, int] = {}
        self._times = cells.Writer(Row, output / "times.csv")
        self._figures = cells.Writer(FigureRow, output / "figures.csv")

    def close(self) -> None:
        for writer in (self._times, self._figures):
            writer.close()

    def order(self, number: int) -> list[Variant]:
        return self.variants if number % 2 == 0 else self.variants[::-1]

    def _trouble(self, what: str) -> None:
        self.troubles[what] = self.troubles.get(what, 0) + 1

    def _output(self, variant: Variant, ranks: int, words: Sequence[str | Path], limit: float) -> str:
        env = {**variant.mpi.environment(ranks), **variant.env}
        text, trouble = output_of(variant.mpi.command(ranks, *words), env, limit)
        if trouble:
            named = " ".join(Path(str(w)).name for w in words[:2])
            self._trouble(f"{variant.name}, {ranks} ranks, {named}: {trouble}")
        return text

    def _keep_times(self, rows: list[Row]) -> None:
        for row in rows:
            if row.errors:
                self._trouble(f"{row.variant}: WRONG DATA in {row.collective} of {row.bytes} bytes, {row.ranks} ranks")
        self.rows += rows
        self._times.add(rows)

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
        rows = []
        for line in text.splitlines():
            name, _, rest = line.partition(",")
            value, _, unit = rest.partition(",")
            if name == program and unit:
                rows.append(FigureRow(number, variant.name, name, ranks, float(value), unit))
        self.figures += rows
        self._figures.add(rows)

    def region(self, number: int, mechanism: str, direction: str, sizes: str) -> None:
        """Without any MPI: two processes of the library's own API."""
        program = install.find("regionbench")
        if program is None:
            raise programs.BuildError("regionbench is missing: build it with `make`")
        counts = [str(run.byte_count(size)) for size in sizes.split(",")]
        s = self.settings
        words = [str(program), mechanism, direction, str(s.seconds), str(s.cache), *counts]
        env = {k: v for k, v in os.environ.items() if k not in ("LD_PRELOAD", "ONECOPY_MECH")}
        text, trouble = output_of(words, env, s.limit)
        if trouble:
            self._trouble(f"regionbench {mechanism} {direction}: {trouble}")
        self._keep_times(parse_rows(text, number, f"{cells.SUBJECT}-{mechanism}"))


# ---- what to run ----------------------------------------------------------------------------------------------------

Task = tuple[str, Callable[[], None]]


def round_tasks(bench: Bench, what: Sequence[str], ranks: int, number: int, small: str) -> list[Task]:
    """One round: every variant does each piece of work, one right after the other."""
    s = bench.settings
    tasks: list[Task] = []

    def alternate(title: str, do: Callable[..., None], *details: object) -> None:
        tasks.extend(
            (f"{ranks} ranks, {title}, {variant.name}", partial(do, variant, ranks, number, *details))
            for variant in bench.order(number)
        )

    if "collectives" in what:
        for name in s.collectives:
            alternate(name, bench.times, name, s.sizes, s.warm)
    if "small" in what:
        for name in s.collectives:
            alternate(f"small {name}", bench.times, name, small, True)
    if "overhead" in what:
        tasks.extend(
            (f"{ranks} ranks, overhead {name}", partial(bench.overhead, variant, ranks, number, name, small))
            for name in s.collectives
            for variant in bench.order(number)
            if cells.is_subject(variant.name)
        )
    if "first-use" in what:
        for count, size in FIRST_USE:
            for way in ("free", "keep"):
                alternate("first use", bench.first_use, count, size, way)
    if "programs" in what:
        for name in UNHELPED:
            alternate(name, bench.figure, name)
    return tasks


def region_tasks(bench: Bench, number: int, sizes: str, mechanisms: Sequence[str]) -> list[Task]:
    order = mechanisms if number % 2 == 0 else mechanisms[::-1]
    return [
        (f"region {direction}, {mechanism}", partial(bench.region, number, mechanism, direction, sizes))
        for direction in ("get", "put")
        for mechanism in order
    ]


def subject(name: str, base: peers.Mpi, env: Mapping[str, str]) -> Variant:
    """The MPI in PATH with our preload library. BenchError when there is none for it."""
    abi = mpi.abi_of_launcher(base.mpirun)
    if abi is None:
        raise BenchError(f"{base.mpirun} does not tell which MPI it belongs to")
    library, why = run.usable_library(abi)
    if library is None:
        raise BenchError(why)
    preload = run.joined_preload(library, os.environ.get("LD_PRELOAD", ""))
    return Variant(name, base, {**env, "LD_PRELOAD": preload})


def choose_variants(args: argparse.Namespace) -> list[Variant]:
    for name in args.peer:
        with console.status(f"installing {name} into {peers.cache() / 'peers'}"):
            peers.install(name)
    names = list(dict.fromkeys([*args.against, *args.peer]))
    variants = [Variant(name, peers.resolve(name)) for name in names]
    base = peers.installed()
    passed_on = {k: v for k, v in os.environ.items() if k.startswith("ONECOPY_") and k != "ONECOPY_STATS"}
    variants.append(subject(cells.SUBJECT, base, passed_on))
    variants += [subject(f"{cells.SUBJECT}-{m}", base, {**passed_on, "ONECOPY_MECH": m}) for m in args.mech]
    return variants


def output_directory(wanted: Path | None) -> Path:
    """A new directory named after the moment, unless one is given."""
    root = install.checkout()
    parent = root / "bench" / "results" if root else Path("onecopy-out")
    directory = wanted or parent / datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%d-%H%M%S")
    directory.mkdir(parents=True, exist_ok=True)
    if (directory / "times.csv").exists():
        raise BenchError(f"{directory} already holds a run: name another one")
    return directory


def describe(variants: Sequence[Variant], args: argparse.Namespace) -> dict[str, object]:
    facts = machine.describe()
    facts["variants"] = {v.name: v.mpi.version() for v in variants}
    settings = {k: v for k, v in vars(args).items() if k not in ("output", "command")}
    facts["settings"] = settings
    return facts


def settings_of(args: argparse.Namespace) -> Settings:
    quick = args.quick
    return Settings(
        collectives=args.collectives or list(COLLECTIVES),
        sizes=args.sizes or ("16K,256K,4M" if quick else SIZES),
        seconds=0.04 if quick else 0.1,
        repetitions=1 if quick else 2,
        rounds=args.rounds or (3 if quick else 6),
        warm=args.warm,
        timing=args.timing,
        cache=machine.last_level_bytes(),
        limit=60.0,
    )


def show(bench: Bench) -> None:
    out = Console() if sys.stdout.isatty() else Console(width=200)
    for table in tables.times(bench.rows):
        out.print(table)
    for each in (tables.summary(bench.rows), tables.figures(bench.figures)):
        if each:
            out.print(each)
    for ranks, speed in cells.copy_speeds(bench.rows).items():
        low, high = speed.low / 1e9, speed.high / 1e9
        out.print(f"copy speed, {ranks} processes at once: {speed.median / 1e9:.1f} GB/s ({low:.1f}-{high:.1f})")
    for trouble, times in bench.troubles.items():
        console.print(f"[red]{times} x[/] {trouble}", highlight=False)


def interrupted_by(number: int, _frame: FrameType | None) -> NoReturn:
    """SIGTERM and SIGHUP end a run as Ctrl-C does: what was measured is kept, and no program goes on without us."""
    raise KeyboardInterrupt(signal.Signals(number).name)


def main(args: argparse.Namespace) -> int:
    for ending in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(ending, interrupted_by)
    try:
        settings = settings_of(args)
        variants = choose_variants(args) if args.what != ["region"] else []
        output = output_directory(args.output)
        bench = Bench(variants, settings, output)
    except (BenchError, peers.MissingError, programs.BuildError) as error:
        run.note(str(error))
        return 1
    (output / "machine.json").write_text(json.dumps(describe(variants, args), indent=2, default=str) + "\n")
    # --sizes is for collectives; for the other kinds when they are measured alone.
    alone = args.sizes if "collectives" not in args.what else None
    small = alone or SMALL_SIZES
    # Rounds outermost: a drift of the host then meets every number of ranks and every variant.
    tasks = [
        task
        for number in range(settings.rounds)
        for ranks in args.ranks
        for task in round_tasks(bench, args.what, ranks, number, small)
    ]
    if "region" in args.what:
        for number in range(settings.rounds):
            tasks += region_tasks(bench, number, alone or REGION_SIZES, args.mech or run.mechanisms_here())
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    interrupted = False
    try:
        with Progress(*columns, console=console) as progress:
            shown = progress.add_task("", total=len(tasks))
            for done, (title, do) in enumerate(tasks):
                progress.update(shown, description=title)
                if not console.is_terminal:  # where no bar is drawn
                    run.note(f"{done + 1} of {len(tasks)}: {title}")
                do()
                progress.advance(shown)
    except programs.BuildError as error:
        run.note(str(error))
        return 1
    except KeyboardInterrupt:
        interrupted = True
    finally:
        bench.close()
    tables.write_summary(bench.rows, output / "summary.csv")
    show(bench)
    console.print(f"written to {output}; draw it with: onecopy plot {output}", highlight=False)
    if interrupted:
        return 130
    return 1 if bench.troubles or not (bench.rows or bench.figures) else 0
