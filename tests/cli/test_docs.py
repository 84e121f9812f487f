# SPDX-License-Identifier: BSD-3-Clause
"""What the documents promise: links lead somewhere, figures are those of bench/results."""

from __future__ import annotations

import argparse
import importlib
import re
import subprocess
from pathlib import Path

import pytest
from onecopy import cells
from onecopy.cells import Row

ROOT = Path(__file__).resolve().parents[2]
RESULTS = ROOT / "bench" / "results"
DOCUMENTS = subprocess.run(
    ["git", "-C", ROOT, "ls-files", "*.md"], capture_output=True, text=True, check=False
).stdout.split()


@pytest.mark.parametrize("name", DOCUMENTS)
def test_links_lead_somewhere(name: str) -> None:
    text = (ROOT / name).read_text()
    for link in re.findall(r"\]\(([^)\s]+)\)", text):
        if "://" not in link and not link.startswith("#"):
            assert ((ROOT / name).parent / link.partition("#")[0]).exists(), link


def test_links_of_installed_documents(tmp_path: Path) -> None:
    subprocess.run([ROOT / "packaging" / "install-docs", tmp_path], check=True)
    documents = sorted(tmp_path.rglob("*.md"))
    assert tmp_path / "docs" / "design.md" in documents
    links = [(path, link) for path in documents for link in re.findall(r"\]\(([^)\s]+)\)", path.read_text())]
    assert (tmp_path / "README.md", "docs/design.md") in links
    for path, link in links:
        assert "://" in link or link.startswith("#") or (path.parent / link.partition("#")[0]).exists(), (path, link)
    assert (tmp_path / "examples" / "regions" / "regions.c").is_file()


def test_one_directory_for_each_kind_of_measurement() -> None:
    index = (RESULTS / "README.md").read_text()
    for directory in (path for path in RESULTS.iterdir() if path.is_dir()):
        assert re.search(rf"^\| \[{directory.name}\]\({directory.name}\) \| `[^`]+` \|", index, re.MULTILINE)
        assert (directory / "machine.json").is_file()
        assert list(directory.glob("*.csv"))


VARIANTS = {"Open MPI 4": "mpi", "Open MPI 5": "openmpi5", "MPICH": "mpich", "Intel MPI": "intelmpi"}


@pytest.mark.parametrize("directory", ["collectives", "messages"])
def test_the_tables_of_readme(directory: str) -> None:
    """Each of their figures, from the raw times."""
    rows = cells.read(Row, RESULTS / directory / "times.csv")
    spreads = cells.spreads(rows)
    text = (ROOT / "README.md").read_text()
    tables = re.findall(r"^\| times as fast as \| (.*) \| mean \|\n\|[-|]*\n((?:\|.*\n)*)", text, re.MULTILINE)
    header, body = tables[["collectives", "messages"].index(directory)]
    names = header.lower().split(" | ")
    lines = re.findall(r"^\| (\w+ MPI [45]?|MPICH) ?[\d.]*, (\d) ranks \| (.*) \|$", body, re.MULTILINE)
    assert len(lines) == len(spreads.keys() - {"onecopy"}) * len({row.ranks for row in rows})
    for mpi, ranks, shown in lines:
        base = spreads[VARIANTS[mpi.strip()]]
        ratios = {
            cell: cells.ratio(base[cell], spread)
            for cell, spread in spreads["onecopy"].items()
            if cell.ranks == int(ranks)
        }
        means = [cells.geometric_mean(r for cell, r in ratios.items() if cell.collective == name) for name in names]
        means.append(cells.geometric_mean(ratios.values()))
        assert [f"{mean:.1f}" for mean in means] == shown.replace("*", "").split(" | ")


@pytest.mark.parametrize("command", ["run", "doctor", "bench", "plot"])
def test_the_page_has_every_option(command: str) -> None:
    parser = argparse.ArgumentParser()
    importlib.import_module(f"onecopy.{command}").add_arguments(parser)
    page = (ROOT / "docs" / "man" / "onecopy.1").read_text().replace("Fl -", "--")
    mine = page[page.index(f".It Cm {command}\n") :]
    options = re.findall(r"--[a-z][a-z-]*", parser.format_help())
    assert options
    for option in set(options) - {"--help"}:
        assert re.search(rf"{option}\b", mine), option
