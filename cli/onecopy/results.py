# SPDX-License-Identifier: BSD-3-Clause
"""The directory of one run of `onecopy bench`: where it is made, and what is written there while the run goes on.

A run is never lost for its files: what cannot be written is said at once and tried again at the end, and the tables
are made from memory.
"""

from __future__ import annotations

import datetime
import json
import os
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from onecopy import cells, run, tables
from onecopy.cells import AnyRow, FigureRow, Row

PARENT = "onecopy-out"


class ResultsError(RuntimeError):
    """No directory to write to; the text says which and why."""


def _made(directory: Path) -> Path:
    try:
        directory.mkdir(parents=True, exist_ok=True)
    except FileExistsError as error:
        raise ResultsError(f"{directory} is a file: name a directory by --output") from error
    except OSError as error:
        raise ResultsError(f"{directory} cannot be made: {error.strerror}; name another one by --output") from error
    if not os.access(directory, os.W_OK | os.X_OK):
        raise ResultsError(f"{directory} cannot be written to: name another one by --output")
    if (directory / "times.csv").exists():
        raise ResultsError(f"{directory} already holds a run: name another one")
    return directory


def _hidden_from_git(parent: Path) -> None:
    """Whatever checkout this is made in stays clean."""
    ignore = parent / ".gitignore"
    if not ignore.exists():
        ignore.write_text("*\n")


def directory(wanted: Path | None) -> Path:
    """The one that is wanted, or a new one named after the moment: below ./onecopy-out, or where nothing can be
    written here, below a temporary directory. ResultsError."""
    if wanted:
        return _made(wanted)
    name = datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%d-%H%M%S")
    try:
        made = _made(Path(PARENT) / name)
        _hidden_from_git(Path(PARENT))
    except (ResultsError, OSError):
        made = _made(Path(tempfile.mkdtemp(prefix=f"{PARENT}-")) / name)
        run.note(f"nothing can be written to {Path.cwd()}: the results go to {made}")
    return made


class Results:
    """Rows as they come, in memory and on disk."""

    def __init__(self, directory: Path, facts: dict[str, object]) -> None:
        """ResultsError when not even the facts can be written: nothing is lost by stopping then."""
        self.directory = directory
        self.facts = facts
        self.rows: list[Row] = []
        self.figures: list[FigureRow] = []
        #: Why a file is not as it should be, "" while all are.
        self.trouble = ""
        try:
            self._write_facts()
            self._times = cells.Writer(Row, directory / "times.csv")
            self._figures = cells.Writer(FigureRow, directory / "figures.csv")
        except OSError as error:
            raise ResultsError(f"{directory} cannot be written to: {error.strerror}") from error

    def _write_facts(self) -> None:
        """In one go: a full disk leaves those of before."""
        path = self.directory / "machine.json"
        fresh = path.with_suffix(".new")
        try:
            fresh.write_text(json.dumps(self.facts, indent=2, default=str) + "\n")
            fresh.replace(path)
        except OSError:
            fresh.unlink(missing_ok=True)
            raise

    def _add(self, writer: cells.Writer, rows: Iterable[AnyRow]) -> None:
        if self.trouble:
            return
        try:
            writer.add(rows)
        except OSError as error:
            self.trouble = f"{self.directory} cannot be written to: {error.strerror}"
            run.note(f"{self.trouble}; measuring goes on, the tables come at the end")

    def add_times(self, rows: Sequence[Row]) -> None:
        self.rows += rows
        self._add(self._times, rows)

    def add_figures(self, rows: Sequence[FigureRow]) -> None:
        self.figures += rows
        self._add(self._figures, rows)

    def finish(self, facts: Mapping[str, object]) -> None:
        """Everything that is not written yet, and the summary; `trouble` says afterwards what is missing."""
        self.facts.update(facts)
        self._times.close()
        self._figures.close()
        try:
            if self.trouble:  # perhaps there is room by now
                cells.write(Row, self.directory / "times.csv", self.rows)
                cells.write(FigureRow, self.directory / "figures.csv", self.figures)
            tables.write_summary(self.rows, self.directory / "summary.csv")
            self._write_facts()
            self.trouble = ""
        except OSError as error:
            self.trouble = f"{self.directory} is incomplete: {error.strerror}"
