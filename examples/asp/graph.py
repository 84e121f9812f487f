# SPDX-License-Identifier: BSD-3-Clause
"""Writes the graph that asp reads: the airways of a part of the world.

An airway is a road in the sky: it joins named points, and aircraft that follow instrument rules fly along it. The
points and the airways between them come from X-Plane's navigation data (cycle 2013.10, Robin A. Peel, GPL version 2
or later), as the PyPI package bluesky-navdata ships it. Lengths are great-circle distances in metres.

    python3 examples/asp/graph.py graph.txt                    Europe, upper airways: 4,795 points
    python3 examples/asp/graph.py --region world graph.txt     the whole upper network: 20,627 points, 1.7 GB of matrix
"""

from __future__ import annotations

import argparse
import math
import sys
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

PACKAGE = "bluesky-navdata"
EARTH_RADIUS_M = 6_371_008.8  # mean radius, IUGG

# South, north, west, east in degrees.
REGIONS = {
    "europe": (34.0, 72.0, -12.0, 32.0),
    "north-america": (14.0, 72.0, -170.0, -50.0),
    "world": (-90.0, 90.0, -180.0, 180.0),
}
LOWER, UPPER = "1", "2"


@dataclass(frozen=True, order=True)
class Point:
    """A named point of the airways: a beacon or an intersection. Names are not unique in the world."""

    name: str
    latitude: float
    longitude: float


def airway_file() -> Path:
    """awy.dat of the installed package."""
    try:
        files = distribution(PACKAGE).files or []
    except PackageNotFoundError:
        sys.exit(f"graph.py: the Python package {PACKAGE} is not installed; `make deps` installs it")
    for file in files:
        if file.name == "awy.dat":
            return Path(str(file.locate()))
    sys.exit(f"graph.py: {PACKAGE} holds no awy.dat")


def segments(path: Path, level: str) -> Iterator[tuple[Point, Point]]:
    """The airway segments of one level: name, latitude, longitude of either end, level, altitudes, airways."""
    with path.open(encoding="latin-1") as lines:
        for line in lines:
            field = line.split()
            if len(field) == 10 and field[6] == level:
                yield (
                    Point(field[0], float(field[1]), float(field[2])),
                    Point(field[3], float(field[4]), float(field[5])),
                )


def inside(point: Point, region: tuple[float, float, float, float]) -> bool:
    south, north, west, east = region
    return south <= point.latitude <= north and west <= point.longitude <= east


def metres(a: Point, b: Point) -> int:
    """Great-circle distance by the haversine formula."""
    lat_a, lat_b = math.radians(a.latitude), math.radians(b.latitude)
    half_lat = (lat_b - lat_a) / 2
    half_lon = math.radians(b.longitude - a.longitude) / 2
    h = math.sin(half_lat) ** 2 + math.cos(lat_a) * math.cos(lat_b) * math.sin(half_lon) ** 2
    return round(2 * EARTH_RADIUS_M * math.asin(math.sqrt(h)))


def largest_component(edges: Iterable[tuple[Point, Point]]) -> tuple[list[Point], list[tuple[Point, Point]]]:
    """The points that most others can be reached from, in order, and the edges between them, each once."""
    neighbours: defaultdict[Point, set[Point]] = defaultdict(set)
    for a, b in edges:
        if a != b:
            neighbours[a].add(b)
            neighbours[b].add(a)
    seen: set[Point] = set()
    best: set[Point] = set()
    for start in neighbours:
        if start in seen:
            continue
        component = {start}
        stack = [start]
        while stack:
            for point in neighbours[stack.pop()] - component:
                component.add(point)
                stack.append(point)
        seen |= component
        best = max(best, component, key=len)
    points = sorted(best)
    return points, [(a, b) for a in points for b in sorted(neighbours[a]) if a < b]


def write_graph(path: Path, region: str, level: str) -> tuple[int, int]:
    """Writes the graph and returns how many points and edges it has."""
    source = airway_file()
    box = REGIONS[region]
    points, edges = largest_component((a, b) for a, b in segments(source, level) if inside(a, box) and inside(b, box))
    number = {point: i for i, point in enumerate(points)}
    partial = path.with_suffix(".partial")
    with partial.open("w", encoding="ascii", errors="replace") as out:
        out.write(f"# Airways: {region}. From {PACKAGE}, X-Plane data cycle 2013.10, GPL-2.0-or-later.\n")
        out.write(f"nodes {len(points)}\n")
        out.writelines(f"point {number[p]} {p.latitude:.6f} {p.longitude:.6f} {p.name}\n" for p in points)
        out.writelines(f"edge {number[a]} {number[b]} {metres(a, b)}\n" for a, b in edges)
    partial.rename(path)  # an interrupted run leaves no half graph
    return len(points), len(edges)


def main() -> None:
    parser = argparse.ArgumentParser(description="Writes the airways of a region as a graph for asp.")
    parser.add_argument("output", type=Path)
    parser.add_argument("--region", choices=sorted(REGIONS), default="europe")
    parser.add_argument("--lower", action="store_true", help="the lower airways instead of the upper ones")
    arguments = parser.parse_args()
    points, edges = write_graph(arguments.output, arguments.region, LOWER if arguments.lower else UPPER)
    print(f"{arguments.output}: {points:,} points, {edges:,} edges")


if __name__ == "__main__":
    main()
