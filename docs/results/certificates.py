"""Writes ``certificates.md``, the table of all instances that are called proven by what proves them, from the index.

python docs/results/certificates.py
"""

from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from statistics import median
from typing import Any

from ddlopt import instances
from ddlopt.instances.library import certificates
from ddlopt.models.catalogue import problem_of, problems

PAGE = Path(__file__).with_suffix(".md")
KINDS = ("combinatorial", "certificate", "solver")
LONG_S, TENTH = 1.0, 0.1
"""Proofs whose checks are looked at, in processor seconds, and the part of proving that a check should take."""
WHY = {
    "combinatorial": "the bound is the proof, and is calculated anew",
    "linear": "building the formulation from the instance and reading it in fractions, where the tree is small",
    "design": "files of tens of megabytes are read, and each case's bound is calculated anew",
    "hops": "the checker lists the digraphs itself",
    "device sets": "the checker goes through the sets of nodes itself; the file has prices only",
    "labels": "the checker follows all labels itself; the file has prices only",
    "prices": "the checker goes through the plans of each job itself; the file has prices only",
    "plans": "the checker goes through the tree of plans itself; the file has an order only",
    "placements": "the checker goes through the tree of placements itself; the file has an order only",
    "stages": "the checker goes through all sequences of stages itself; the file has the claim only",
    "uniform plans": "the checker goes through all plans itself; the file has the claim only",
}
HEAD = """# What proves the best known solutions

Of every bundled instance that is called proven, by `python benchmarks suite/certificates`: *combinatorial* is the bound
recomputed in rational numbers, *certificate* one that the checker accepts: a tree over a formulation, a topology's
branch and bound, or what a problem has of its own ([how](../reference/certificates.md)); what has neither is
*optimal up to floating point*: the word of a solver or a search, or a bound that is not recomputed exactly.
Made on {day}. Time limit of a run: {limit:g} s at the least; it says what so little time proves and not what can be
proven. Times are processor seconds; checks of trees were measured again, by the same command with `--checking`.

"""


def page() -> Iterator[str]:
    """The page, piece by piece."""
    known = certificates.entries()
    limit = min(entry["limit_s"] for entry in known.values())
    yield HEAD.format(day=max(entry["day"] for entry in known.values()), limit=limit)
    counts = Counter((problem_of(instances.load(name)).path, entry["evidence"]) for name, entry in known.items())
    yield "| problem | combinatorial | certificate | up to floating point |\n| --- | ---: | ---: | ---: |\n"
    for path in problems():
        row = [counts[path, kind] for kind in KINDS]
        if any(row):
            yield f"| {path} | {' | '.join(map(str, row))} |\n"
    total = [sum(counts[path, kind] for path in problems()) for kind in KINDS]
    yield f"| all | {' | '.join(map(str, total))} |\n\n"
    yield from long_checks(known)
    yield "| instance | evidence | formulation of, or kind | gap | nodes | bytes | proving | checking |\n"
    yield "| --- | --- | --- | ---: | ---: | ---: | ---: | ---: |\n"
    for name, entry in sorted(known.items()):
        if entry["evidence"] == "solver":
            reason = entry["reason"].split("; ")[0]
            yield f"| {name} | up to floating point: {reason} | | | | | | |\n"
            continue
        gap = f"{entry['gap']:.1e}" if entry["gap"] else "0"
        times = f"{entry['proving_s']:.2f} s | {entry['checking_s']:.3f} s" if "proving_s" in entry else "handed in | –"
        how = entry["method"] or (entry["kind"] if entry["kind"] in ("design", "spectral") else "–")
        told = f"{entry['evidence']} | {how} | {gap} | {entry['nodes'] or '–'} | {entry['bytes']}"
        yield f"| {name} | {told} | {times} |\n"


def long_checks(known: Mapping[str, Mapping[str, Any]]) -> Iterator[str]:
    """How many checks take more than a tenth of proving, by kind, and why."""
    proofs = [each for each in known.values() if each["evidence"] != "solver" and each.get("proving_s", 0) >= LONG_S]
    slow = [each for each in proofs if each["checking_s"] > TENTH * each["proving_s"]]
    yield (
        f"A check is to take at most a tenth of proving. Of {len(proofs)} proofs that took {LONG_S:g} s or more, "
        f"{len(slow)} have a longer one:\n\n"
    )
    yield "| kind | proofs | longer checks | at most | median | what takes so long |\n"
    yield "| --- | ---: | ---: | ---: | ---: | --- |\n"
    for kind in sorted({each["kind"] for each in proofs}):
        parts = [each["checking_s"] / each["proving_s"] for each in proofs if each["kind"] == kind]
        late = sum(each["kind"] == kind for each in slow)
        told = WHY[kind] if late else "–"
        yield f"| {kind} | {len(parts)} | {late} | {max(parts):.0%} | {median(parts):.1%} | {told} |\n"
    yield "\n"


if __name__ == "__main__":
    PAGE.write_text("".join(page()), encoding="utf-8")
