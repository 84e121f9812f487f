# SPDX-License-Identifier: BSD-3-Clause
"""What the ranks of a run recorded, in words: for each job how many calls were served, why others were not, and how
long they took (docs/stats.md)."""

from __future__ import annotations

import json
import textwrap
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from onecopy import record
from onecopy.record import Report

#: outcome -> (in a table's row, what it means). mpi/call.h has the list.
OUTCOMES = {
    "served": ("served", "moved by onecopy"),
    "failed": ("failed", "moved by onecopy, and ended with an error"),
    "profile": ("would be served", "large enough, on ranks of one node: what onecopy would move"),
    "idle": ("onecopy not used", "see the reason above"),
    "empty": ("no data", "a count of zero"),
    "small": (
        "too small",
        "below {least}, or Bcast's limit, which may be higher, where the MPI is as fast (--min sets it)",
    ),
    "never": ("not with this", "left to the MPI with the mechanisms that are allowed (--mech)"),
    "early": ("not enough calls yet", "the first three of a communicator, below {credit} (--min serves them, too)"),
    "alone": ("single rank", "a communicator of one rank"),
    "beyond": ("ranks elsewhere", "the communicator has some on other nodes, without onecopy, or spawned"),
    "inter": ("intercommunicator", "left to the MPI: of spawned processes, or made of another"),
    "setup": ("no room", "a member had no board or memory for the communicator"),
    "operator": ("operator or type", "a reduction by an operator that the type has not, or of a type with gaps"),
    "freed": ("being freed", "called by a delete callback of the communicator"),
    "invalid": ("wrong arguments", "left to the MPI to report"),
}
MECHANISMS = {
    "heap": "from or to a buffer in the shared heap (malloc's, or a packed copy of a buffer with gaps)",
    "map": "from or to a buffer mapped by the kernel module",
    "kcopy": "copied by the kernel module",
    "cma": "by process_vm_readv and process_vm_writev",
    "staged": "through memory of onecopy's, which costs a copy more",
}
#: Rows of a table: sizes from here up to the next one.
EDGES = (0, 1, 1 << 10, 8 << 10, 64 << 10, 512 << 10, 4 << 20, 32 << 20)
WIDTH = 100
LEGEND = (
    "size: bytes of the message or, in Scatter, Gather, Allgather and Alltoall, of one block.",
    "calls, data: of all ranks, so that a call counts once on each rank; data is what the send and receive buffers of"
    " the calls hold.",
    "mean, min, max: seconds a rank was inside, waiting included.",
    "share: the mean's part of the run, which is counted from MPI_Init to MPI_Finalize; the times of a rank's threads"
    " add up, to more than that where several are inside at once.",
)


@dataclass
class Row:
    """Calls that a table's row is about."""

    calls: int = 0
    data: int = 0
    #: ns, by rank.
    inside: Counter[int] = field(default_factory=Counter)

    def add(self, rank: int, cell: Report) -> None:
        self.calls += cell["calls"]
        self.data += cell["data"]
        self.inside[rank] += cell["ns"]

    def merge(self, other: Row) -> None:
        self.calls += other.calls
        self.data += other.data
        self.inside.update(other.inside)


@dataclass
class Job:
    """The ranks of one MPI_COMM_WORLD that left figures."""

    ranks: list[Report]

    def rows(self) -> dict[tuple[str, int, str], Row]:
        """By collective, lower edge of the size, outcome."""
        rows: dict[tuple[str, int, str], Row] = {}
        for rank, report in enumerate(self.ranks):
            for cell in report["cells"]:
                edge = max(edge for edge in EDGES if edge <= cell["size"])
                rows.setdefault((cell["call"], edge, cell["outcome"]), Row()).add(rank, cell)
        return rows

    def total(self, *outcomes: str) -> Row:
        """Of these outcomes, or of all."""
        total = Row()
        for (_, _, outcome), row in self.rows().items():
            if not outcomes or outcome in outcomes:
                total.merge(row)
        return total

    def mean(self, row: Row) -> float:
        """Seconds a rank."""
        return sum(row.inside.values()) / len(self.ranks) / 1e9

    @property
    def seconds(self) -> float:
        """How long a rank ran, from MPI_Init to MPI_Finalize."""
        return float(sum(report["ns"] for report in self.ranks)) / len(self.ranks) / 1e9

    @property
    def profile(self) -> bool:
        return any(report["profile"] for report in self.ranks)

    def each(self, key: str) -> list[str]:
        """What ranks say under a key, each text once."""
        return list(dict.fromkeys(report[key] for report in self.ranks if report[key]))


def jobs(reports: Iterable[Report]) -> list[Job]:
    """By the name that the launcher gave the job, which may have none, or the same for several: a rank that comes again
    is another job's."""
    found: dict[tuple[str, int], Job] = {}
    seen: Counter[tuple[str, int]] = Counter()
    for report in reports:
        turn = seen[report["job"], report["world_rank"]]
        seen[report["job"], report["world_rank"]] += 1
        found.setdefault((report["job"], turn), Job([])).ranks.append(report)
    for job in found.values():
        job.ranks.sort(key=lambda report: report["world_rank"])
    return list(found.values())


def size(count: float) -> str:
    """1536 -> 1.5 KiB"""
    units = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"]
    while count >= 1024 and len(units) > 1:
        count /= 1024
        units.pop(0)
    return f"{count:.0f} {units[0]}" if units[0] == "B" else f"{count:.1f} {units[0]}"


def limit(count: int) -> str:
    return size(count).replace(".0 ", " ")


def plural(count: int, noun: str) -> str:
    if count == 1:
        return f"1 {noun}"
    return f"{count:,} {noun[:-1]}ies" if noun.endswith("y") else f"{count:,} {noun}s"


def word(outcome: str) -> str:
    """What a table calls it; an outcome of a newer library by its own name."""
    return OUTCOMES[outcome][0] if outcome in OUTCOMES else outcome


def size_range(edge: int) -> str:
    if edge == 0:
        return "-"
    upper = next((other for other in EDGES if other > edge), None)
    if edge == 1:
        return f"< {limit(1 << 10)}"
    return f"{limit(edge)} .." if upper is None else f"{limit(edge)} - {limit(upper)}"


def seconds(count: float) -> str:
    """Right to the millisecond, but for what is less than that."""
    if count >= 1000:
        return f"{count:.0f}"
    return f"{count:.3f}" if count >= 0.0005 or not count else "< .001"


def share(part: float, whole: float) -> str:
    return f"{100 * part / whole:.1f} %" if whole > 0 else "-"


def rank_list(ranks: Sequence[int]) -> str:
    """0, 1, 2, 5 -> 0-2, 5"""
    parts: list[list[int]] = []
    for rank in sorted(ranks):
        if parts and parts[-1][-1] == rank - 1:
            parts[-1][1:] = [rank]
        else:
            parts.append([rank])
    return ", ".join("-".join(map(str, part)) for part in parts)


def who(job: Job) -> str:
    """The ranks that there are figures of."""
    world = job.ranks[0]["world_size"]
    if world > len(job.ranks):
        return f"rank{'s' * (len(job.ranks) != 1)} {rank_list([r['world_rank'] for r in job.ranks])} of {world}"
    return plural(len(job.ranks), "rank")


def endings(job: Job) -> list[str]:
    """How ranks ended that did not call MPI_Finalize."""
    by_state: dict[int, list[Report]] = {}
    for report in job.ranks:
        by_state.setdefault(report["state"], []).append(report)
    aborted = by_state.get(record.ABORTED, [])
    said = [f"rank {report['world_rank']} called MPI_Abort({report['code']})" for report in aborted]
    if running := by_state.get(record.RUNNING):
        ranks = rank_list([report["world_rank"] for report in running])
        said.append(
            f"ended without MPI_Finalize: rank{'s' * (len(running) > 1)} {ranks}; "
            "what is counted goes up to the last collective call"
        )
    if starting := by_state.get(record.STARTING):
        said.append(f"{plural(len(starting), 'rank')} ended inside MPI_Init")
    return said


def absent(job: Job) -> list[str]:
    """Ranks without figures, beside some that have them."""
    known = {report["world_rank"] for report in job.ranks}
    missing = [rank for rank in range(job.ranks[0]["world_size"]) if rank not in known]
    if not missing:
        return []
    where = "where the library or the directory of the figures is not (another node), or under another `onecopy run`"
    return [f"no figures of rank{'s' * (len(missing) > 1)} {rank_list(missing)}: they ran {where}"]


def remarks(job: Job) -> list[str]:
    said = [f"not used: {why}" for why in job.each("idle")]
    said += [f"no shared heap: {why}" for why in job.each("heap")]
    if refused := sum(report["refused"] for report in job.ranks):
        said.append(f"{plural(refused, 'copy')} refused by a mechanism, and made by the next one")
    return said + absent(job) + endings(job)


def moved(job: Job, key: str = "mech", names: Sequence[str] = record.MECHANISMS) -> dict[str, tuple[int, int]]:
    """Calls and bytes under each name that was used: copies of each mechanism, for collectives or `messages` of the
    MPI's own, or what became of one-sided `transfers`."""
    used = {}
    for name in names:
        calls = sum(report[key][name]["calls"] for report in job.ranks)
        if calls:
            used[name] = (calls, sum(report[key][name]["bytes"] for report in job.ranks))
    return used


def transfers(job: Job) -> dict[str, tuple[int, int]]:
    return moved(job, "transfers", record.TRANSFERS)


def helped(job: Job) -> list[str]:
    """What of its messages the side copied that waited for the other."""
    total = sum(report["helped"] for report in job.ranks)
    return [f"{size(total)} of it by ranks that waited for them"] if total else []


#: Why one-sided transfers were left to the MPI.
LEFT = {
    "window": "in windows that are the MPI's memory, or not in the shared heap of a rank of the node",
    "types": "with datatypes that had better be packed",
    "epoch": "because the target was late, or few and short under a lock",
    "memory": "because the caller's buffer is neither in the shared heap nor static data or the stack",
}


def transfers_line(used: Mapping[str, tuple[int, int]]) -> str:
    left = [figures for name, figures in used.items() if name in LEFT]
    parts = {"by a pointer": used.get("served", (0, 0)), "left to the MPI": tuple(map(sum, zip(*left, strict=True)))}
    said = [
        f"{size(total[1])} {how} ({plural(total[0], 'call')})" for how, total in parts.items() if total and total[0]
    ]
    return f"one-sided transfers: {', '.join(said)}"


def transfers_table(used: Mapping[str, tuple[int, int]]) -> list[str]:
    said = ["", "one-sided transfers (Put, Get):"]
    for name, (calls, total) in used.items():
        how = f"left to the MPI {LEFT[name]}" if name in LEFT else "copied by a pointer"
        said += wrapped(f"  {size(total):>11} in {plural(calls, 'call')}: {how}", 15)
    return said


def meaning(outcome: str, job: Job) -> str:
    """Why it was so, with this run's limits."""
    least, credit = (max(report[key] for report in job.ranks) for key in ("min", "credit"))
    text = OUTCOMES[outcome][1] if outcome in OUTCOMES else outcome
    return text.format(least=limit(least), credit=limit(credit))


def estimate(job: Job) -> list[str]:
    """What a profile tells about what could be gained."""
    row = job.total("profile")
    if not row.calls:
        return ["there is nothing here that onecopy would serve"]
    mean, least = job.mean(row), min(row.inside[rank] for rank in range(len(job.ranks))) / 1e9
    return [
        f"{seconds(mean)} s of {seconds(job.seconds)} s ({share(mean, job.seconds)}) a rank are spent in collectives "
        "that onecopy would serve: that is the most that could be gained",
        f"the rank that spends least there spends {seconds(least)} s; what others spend beyond that is mostly waiting "
        "for late ranks, and stays",
    ]


def lines(job: Job) -> list[str]:
    """The job in a few lines."""
    everything, served = job.total(), job.total("served")
    busiest: Counter[str] = Counter()
    others = {outcome for _, _, outcome in job.rows()} - {"served"}
    for (call, _, outcome), row in job.rows().items():
        if outcome == "served":
            busiest[call] += row.calls
    calls = f"{served.calls:,} of {plural(everything.calls, 'collective call')} served"
    text = f"{who(job)}, {seconds(job.seconds)} s: {calls}"
    if busiest:
        text += f" ({', '.join(f'{name} {n:,}' for name, n in busiest.most_common(4))})"
    said = [text]
    if everything.calls:
        inside, ours = job.mean(everything), job.mean(served)
        threads = ", its threads added up" if inside > job.seconds else ""
        said.append(
            f"inside collectives: {seconds(inside)} s a rank ({share(inside, job.seconds)} of the run{threads}), "
            f"{seconds(ours)} s of it in served ones"
        )
    if others:
        rows = sorted(((job.total(name), name) for name in others), key=lambda row: -row[0].calls)
        why = [f"{row.calls:,} {word(name)} ({seconds(job.mean(row))} s)" for row, name in rows]
        said.append(f"left to the MPI: {', '.join(why)}")
    if used := moved(job):
        said.append(f"moved between ranks: {', '.join(f'{size(b)} by {name}' for name, (_, b) in used.items())}")
    if used := moved(job, "messages"):
        copies = [f"{size(b)} by {name} ({plural(n, 'copy')})" for name, (n, b) in used.items()]
        said.append(f"large messages of the MPI: {', '.join(copies + helped(job))}")
    if used := transfers(job):
        said.append(transfers_line(used))
    said += remarks(job)
    if job.profile:
        said += estimate(job)
    elif others:
        said.append("--stats=table tells more: sizes, times, what the words mean")
    return said


HEAD = f"{'collective':<15}{'size':<18}{'calls':>9}{'data':>11}{'mean s':>9}{'min':>8}{'max':>8}{'share':>8}"


def row_text(job: Job, names: tuple[str, str], row: Row, outcome: str) -> str:
    times = [row.inside[rank] / 1e9 for rank in range(len(job.ranks))]
    mean, least, most = map(seconds, (job.mean(row), min(times), max(times)))
    line = f"{names[0]:<15}{names[1]:<18}{row.calls:>9,}{size(row.data) if row.data else '-':>11}"
    return f"{line}{mean:>9}{least:>8}{most:>8}{share(job.mean(row), job.seconds):>8}  {outcome}".rstrip()


def wrapped(text: str, indent: int = 2) -> list[str]:
    return textwrap.wrap(text, WIDTH, subsequent_indent=" " * indent, break_long_words=False)


def table(job: Job) -> list[str]:
    """The job by collective, size and outcome, and what the words mean."""
    hosts, mpi = job.each("host"), job.each("mpi")
    version = job.ranks[0]["version"]
    where = f"{who(job)} on {hosts[0] if len(hosts) == 1 else plural(len(hosts), 'node')}"
    said = wrapped(f"onecopy {version}: {where}, {', '.join(mpi) or 'an unknown MPI'}, {seconds(job.seconds)} s")
    for remark in remarks(job):
        said += wrapped(remark)
    rows = job.rows()
    said += ["", HEAD]
    said += [
        row_text(job, (call, size_range(edge)), row, word(outcome))
        for (call, edge, outcome), row in sorted(rows.items())
    ]
    ours = "profile" if job.profile else "served"
    said += [row_text(job, ("all", ""), job.total(), ""), row_text(job, (word(ours), ""), job.total(ours), "")]
    if used := moved(job):
        said += ["", "moved between ranks, each copy counted once:"]
        for name, (n, b) in used.items():
            said += wrapped(f"  {name:<8}{size(b):>11} in {plural(n, 'copy')}: {MECHANISMS[name]}", 21)
    if used := moved(job, "messages"):
        said += ["", "large messages of the MPI, copied by its receivers or senders:"]
        said += [f"  {name:<8}{size(b):>11} in {plural(n, 'copy')}" for name, (n, b) in used.items()]
        said += [f"  {text}" for text in helped(job)]
    if done := transfers(job):
        said += transfers_table(done)
    said.append("")
    for remark in estimate(job) if job.profile else []:
        said += wrapped(remark)
    outcomes = dict.fromkeys(outcome for _, _, outcome in sorted(rows))
    for legend in [*LEGEND, *(f"{word(name)}: {meaning(name, job)}." for name in outcomes)]:
        said += wrapped(legend)
    return said


def document(found: Sequence[Job], status: int, cause: str) -> str:
    """All of it, as one line of JSON."""
    return json.dumps({"jobs": [{"ranks": job.ranks} for job in found], "status": status, "cause": cause})
