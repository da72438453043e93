"""Brings the library's records up to date: the default method and the best heuristic on every instance.

    python benchmarks suite/records --time-limit 60
    python benchmarks suite/records "codesign/tiny-*" --open --time-limit 30

Open instances come first. Whatever is better is kept, solution and bound separately, and every record tells when it was
challenged, by which methods and by which code. An interruption loses no more than the instance in work: the same
command goes on, and leaves alone what the present code was tried on for as long. The library must be writable.
"""

import fnmatch
import statistics
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

from benchmarks import quoted
from benchmarks.harness import Benchmark, Option
from benchmarks.suite.gaps import loss
from ddlopt import instances
from ddlopt.analysis.bench import Store
from ddlopt.analysis.bench.sweep import Sweep
from ddlopt.analysis.bench.tasks import plan
from ddlopt.analysis.challenges import challenge_of, is_fresh, is_settled
from ddlopt.analysis.index import gap_of, write_index
from ddlopt.analysis.records import take_over
from ddlopt.instances.index import PROVEN
from ddlopt.instances.library import records as library_records
from ddlopt.instances.library.store_best import store_challenge
from ddlopt.models.catalogue import problem_of
from ddlopt.models.contracts import Instance
from ddlopt.models.errors import UnknownNameError
from ddlopt.solvers import catalogue
from ddlopt.solvers.contracts import Limits
from ddlopt.solvers.names import split


def records(asked):
    """A line for each instance, and for what is better."""
    names = wanted(asked.only, asked.open)
    left = [name for name in names if asked.again or not is_fresh(*of(name), asked.time_limit)]
    hours = 2 * asked.time_limit * len(left) / 3600
    yield f"{len(left)} of {len(names)} instances are to be challenged, {hours:.1f} h at most."
    if asked.look:
        return
    try:
        for place, name in enumerate(left, 1):
            methods = methods_for(instances.load(name))
            yield f"{place}/{len(left)} {name}: {', '.join(methods)}"
            yield from challenged(name, methods, asked.limits)
    finally:
        write_index()


def challenged(name: str, methods: Sequence[str], limits: Limits) -> Iterator[str]:
    """Run the methods, each in a process of its own, keep what is better, and note that they were tried."""
    with tempfile.TemporaryDirectory() as folder, Store(Path(folder) / "r.sqlite") as store:
        for _ in Sweep(plan([name], methods, [0], limits), store).run():
            pass
        for news in take_over(store):
            yield f"  {'REFUSED ' if news.refused else ''}{news.text}"
    store_challenge(name, challenge_of(instances.load(name), methods, limits.time_s or 0.0))


def wanted(patterns: Sequence[str], open_only: bool) -> list[str]:
    """Instances that the patterns mean, open ones first; without patterns all.

    Raises
    ------
    UnknownNameError
        If a pattern means none.
    """
    for pattern in patterns:
        if not fnmatch.filter(instances.names(), pattern):
            raise UnknownNameError(f"'{pattern}' matches no bundled instance; see `ddlopt list`")
    names = [name for name in instances.names() if not patterns or any(fnmatch.fnmatchcase(name, p) for p in patterns)]
    open_ = [name for name in names if is_open(name)]
    return open_ if open_only else [*open_, *(name for name in names if name not in set(open_))]


def of(name: str) -> tuple[library_records.Record | None, Instance]:
    return instances.record(name), instances.load(name)


def is_open(name: str) -> bool:
    """Whether the best known solution of an instance is not proven optimal."""
    gap = gap_of(*of(name))
    return (gap is None or gap > PROVEN) and not is_settled(*of(name))


def methods_for(instance: Instance) -> list[str]:
    """The default method and the best heuristic."""
    heuristic = best_heuristic(instance)
    return list(dict.fromkeys([catalogue.default_method(instance), *([heuristic] if heuristic else [])]))


def best_heuristic(instance: Instance) -> str | None:
    """Of the heuristics that cover an instance the one that loses least in the kept runs of its problem.

    Where there are none, the one that found most of the best known solutions; of equals the first of the catalogue.
    """
    covering = [
        entry.name
        for entry in catalogue.entries(instance.family)
        if entry.kind == "heuristic" and catalogue.method(entry.name, instance.family).refuses(instance) is None
    ]
    problem = problem_of(instance).path
    known, lost = library_records.read(instance.family), dict[str, list[float]]()
    for (stem, method), objective in quoted.objectives(quoted.read(instance.family)).items():
        other = quoted.instance_of(f"{instance.family}/{stem}")
        found = known[stem].found if stem in known else None
        if bare(method) in covering and problem_of(other).path == problem and found is not None:
            lost.setdefault(method, []).append(loss(objective, found.objective, other) or 0.0)
    if lost:
        return min(lost, key=lambda method: (statistics.fmean(lost[method]), covering.index(bare(method))))
    times = Counter(finders(instance.family, problem))
    return max(covering, key=lambda method: (times[method], -covering.index(method)), default=None)


def bare(method: str) -> str:
    """A method's name without its options."""
    return split(method)[0]


def finders(family: str, problem: str) -> Iterator[str]:
    """What found the best known solutions of a problem."""
    for stem, known in library_records.read(family).items():
        if known.found is not None and problem_of(quoted.instance_of(f"{family}/{stem}")).path == problem:
            yield bare(known.found.method.partition(" (")[0])


BENCH = Benchmark(
    records,
    in_all=False,
    pages=False,
    only=Option([], "patterns of instances; all by default", type=str, positional=True),
    time_limit=Option(60.0, quick=1.0),
    open=Option(False, "only those that are not proven optimal", quick=True),
    again=Option(False, "also what the present code was tried on"),
    look=Option(False, "tell what there is to do, and stop", quick=True),
)
