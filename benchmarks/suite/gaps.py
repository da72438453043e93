"""The finding: how far heuristics are from the optimum, by family, from the runs that the repository keeps.

    ddlopt bench default --store results.sqlite
    python benchmarks suite/gaps results.sqlite
    python docs/results/from_records.py --pictures

The second command gives the library what the store has of better solutions and bounds, keeps the runs themselves in
``docs/results/runs`` (see ``benchmarks/quoted.py``), and prints the tables; the third writes them into the pages. Each
row compares with the best known solution of the library's records: how much more time, or less utility, a method's
solution has; the median over the seeds. ``gap left`` is the distance of the best known solution from the best known
bound. Without a store the default suite is run first, for an hour or two.
"""

import tempfile
from collections.abc import Collection, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from benchmarks import quoted
from benchmarks.harness import DDLOPT, ROOT, SHORT_S, Benchmark, Option, command
from ddlopt import instances
from ddlopt.analysis import plots, tables
from ddlopt.analysis.bench import Store
from ddlopt.analysis.index import write_index
from ddlopt.analysis.records import take_over
from ddlopt.analysis.views import sizes
from ddlopt.instances import library
from ddlopt.instances.index import Listed
from ddlopt.models.catalogue import FAMILY_NAMES, problem_of
from ddlopt.models.contracts import Instance
from ddlopt.solvers import catalogue
from ddlopt.solvers.certified import recorded
from ddlopt.solvers.contracts import relative_gap
from ddlopt.solvers.names import split

TITLES = {
    "plan": "Where groups of operators run",
    "sfb": "Sufficient factors",
    "timeline": "Which compressor for which gradient",
    "levels": "How much to compress",
}
"""Of problems, where they are not called by their names."""
PICTURED = {
    "topology": (
        ("exact", "link-exchange", "topology-finder", "topology-finder:variant=released"),
        (
            *("all-to-all-n6-d2", "all-to-all-n8-d2", "all-to-all-n16-d4", "danoint", "hybrid-n16-d4-s1"),
            *("dlrm-n12-d4", "dlrm-n16-d4", "dlrm-stress-n16-d4"),
            *("dlrm-n128-d4", "dlrm-n128-d4-duplex", "dlrm-stress-n128-d4", "ncf-n128-d4"),
        ),
        "Iteration time relative to the best found",
    ),
    "scheduling": (
        ("job-plans", "fair-shares", "gadget", "optimus", "srtf", "fifo"),
        (
            *("capped-j50-t50-g32", "deadlines-j50-t50-g32", "elastic-j200-t100-g64", "energy-j20-t20-g16"),
            *("contended-j20-t10-s4", "leaf-spine-j40-t10-s16", "departures-j96-t24-g16", "caps-j11-t12-g16"),
            *("bursty-j40-t24-g16", "all-or-nothing-j20-t20-g16"),
        ),
        "Utility of schedulers relative to the best found",
    ),
    "compression": (
        ("exact", "espresso", "secopa", "lgreco", "tag", "none"),
        (
            *("bert-base-n4x8-pcie-25g-budget", "bert-large-n8x8-nvlink-25g-budget", "espresso-resnet101-dgc-pcie"),
            *("gpt2-n4x8-pcie-10g-budget", "resnet50-n64-10g-budget", "resnet101-n4x4-pcie-10g-budget-fusion"),
            *("vgg16-n8x8-nvlink-25g-budget", "sfb-vgg16-b4-w16-25g", "sfb-vgg19-b3-w2-tag"),
        ),
        "Iteration time relative to the best found",
    ),
    "codesign": (
        ("joint", "alternating", "alternating:strategies=exact,topology=exact", "data-parallel"),
        (
            *("bert-n12-d4", "candle-n12-d4", "dlrm-n12-d4", "ncf-n12-d4", "resnet50-n12-d4", "vgg16-n12-d4"),
            *("dlrm-n128-d4", "ncf-n128-d4"),
        ),
        "Iteration time relative to the best found",
    ),
    "deployment": (
        ("exact", "plan-search", "sufficient-factors:search=tag", "mcmc", "data-parallel:split=speed", "heft"),
        (
            *("tiny-g4-m2-s4", "vgg19-testbed", "resnet101-testbed", "inception-v3-testbed", "bert-small-testbed"),
            *("transformer-base-two-machines", "bert-large-drawn-s3"),
        ),
        "Time of a training step relative to the best found",
    ),
    "aggregation": (
        ("exact", "graph-search", "takahashi-matsuyama", "first-switch", "max"),
        (
            *("abilene-congestion", "fat-tree-k4-congestion", "fat-tree-k4-merging", "fat-tree-k4-utilization"),
            *("leaf-spine-8x4-rates", "torus-4x4-utilization"),
        ),
        "Where to aggregate, routes free: time or rate relative to the best found",
    ),
    "gossip": (
        ("exact", "best-constant", "metropolis", "max-degree", "uniform"),
        (
            *("cvx-n8-averaging", "cvx-n8-chain", "cvx-n8-process", "nsfnet-n13-averaging", "nsfnet-n13-chain"),
            *("nsfnet-n13-process", "random-n100-averaging", "random-n100-chain", "torus-n64-chain"),
        ),
        "Weights: factor or rate relative to the best found",
    ),
    "cluster": (
        ("exact", "gang-exchange", "kueue", "slurm-block", "hived-cells"),
        (
            *("placement-blocks-r16", "placement-crossings-pods-r24", "placement-crossings-r12"),
            *("placement-pairs-r12", "placement-pairs-r32", "placement-powers-r40"),
        ),
        "Places of gangs: pairs or crossings relative to the fewest",
    ),
}
"""By family: methods, instances and the title of the picture."""
PARTS = {"codesign": tuple(quoted.PARTS)}
"""By family: columns on what the gap left consists of, from the run that has the best solution and bound."""
SAME = 1e-5
"""Relative difference up to which a run's bound is the best known one."""


def gaps(asked):
    """The tables of each family."""
    folder = asked.into
    with tempfile.TemporaryDirectory() as scratch:
        path = asked.store
        if path is None:
            path = Path(scratch) / "results.sqlite"
            limit = ["--time-limit", asked.time_limit] if asked.time_limit else []
            command([*DDLOPT, "bench", asked.suite or "default", *limit, "--store", path], quiet=False)
        with Store(path, write=False) as store:
            if folder == quoted.FOLDER:
                yield from (news.text for news in take_over(store))
                write_index()
            taken = quoted.take(store, asked.note, folder)
    for family in FAMILY_NAMES:
        if family in taken:
            yield f"# {family}\n\n{text_of(family, folder)}".rstrip()


def text_of(family: str, folder: Path = quoted.FOLDER) -> str:
    """How the runs of a family were made, and a table of each of its problems."""
    runs = [run for run in quoted.read(family, folder) if run.status != "reference"]
    by_problem: dict[str, dict[str, list[quoted.Run]]] = {}
    for run in runs:
        problem = problem_of(quoted.instance_of(f"{family}/{run.instance}")).path
        by_problem.setdefault(problem, {}).setdefault(run.instance, []).append(run)
    parts = [filled(quoted.facts(runs, folder))]
    short = [run.time_limit_s for run in runs if run.time_limit_s is not None and run.time_limit_s < SHORT_S]
    if short:
        parts.append(
            f"Some of the runs had {min(short):g} s: the table says what a method finds in that time, not what it can "
            "do. Methods that end by themselves sooner lose nothing by it."
        )
    for problem, by_instance in by_problem.items():
        names = sorted(by_instance, key=library.natural)
        title = problem.rpartition("/")[2]
        rows = table(family, [row_of(family, name, by_instance[name]) for name in names])
        parts.append(f"## {TITLES.get(title, title)}\n\n{rows}" if "/" in problem else rows)
    return "\n\n".join(part.rstrip() for part in parts)


def selection(family: str, methods: Sequence[str], names: Sequence[str]) -> str:
    """How some methods do on some instances."""
    runs = [run for run in quoted.read(family) if run.instance in names and run.method in methods]
    rows = [row_of(family, name, [run for run in runs if run.instance == name]) for name in names]
    columns = ["instance", "best known", "gap left", *methods]
    return markdown(columns, rows).rstrip()


def table(family: str, rows: Sequence[Mapping[str, str]]) -> str:
    """Rows under the columns that any of them has, methods in the order of the catalogue."""
    order = {method: place for place, method in enumerate(catalogue.method_names(family))}
    given = list(dict.fromkeys(column for row in rows for column in row))
    last = given.index("gap left") + 1 + len(PARTS.get(family, ()))
    methods = sorted(given[last:], key=lambda name: (order.get(split(name)[0], len(order)), name))
    return markdown([*given[:last], *methods], rows)


def markdown(columns: Sequence[str], rows: Sequence[Mapping[str, str]], texts: Collection[str] = ()) -> str:
    """Columns of rows, dashes where a row has none; the first one and those of texts begin at the left."""
    lines = [columns, ["---" if column in (columns[0], *texts) else "---:" for column in columns]]
    lines += [[row.get(column, tables.NONE) for column in columns] for row in rows]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def row_of(family: str, name: str, runs: Sequence[quoted.Run]) -> dict[str, str]:
    """What is known of an instance, and how far from the best known each method is."""
    instance = quoted.instance_of(f"{family}/{name}")
    best, bound = known(f"{family}/{name}")
    row = {
        "instance": name,
        **{header: str(size) for header, size in sizes(instance).items() if header != "problem"},
        "best known": tables.objective_text(best, instance.objective_unit),
        "bound": tables.objective_text(bound, instance.objective_unit, like=best),
        "gap left": tables.NONE if best is None else tables.gap_text(relative_gap(best, bound, instance.sense)),
    }
    if family in PARTS:
        settled = (run for run in runs if same(run.bound, bound) and same(run.objective, best))
        sharpest = next(settled, None)
        for column in PARTS[family]:
            row[column] = tables.gap_text(sharpest and getattr(sharpest, column.replace(" ", "_")))
    for (_, method), objective in quoted.objectives(run for run in runs if run.answered).items():
        row[method] = tables.gap_text(loss(objective, best, instance))
    return row


@cache
def known(name: str) -> tuple[float | None, float | None]:
    """The best known objective and bound of a bundled instance."""
    record = instances.record(name)
    found, bound = (None, None) if record is None else (record.found, record.bound)
    return found and found.objective, bound and bound.value


def loss(objective: float, best: float | None, instance: Instance | Listed) -> float | None:
    """How much worse than the best known an objective is, relative to it; None where that is 0."""
    if not best:
        return 0.0 if objective == best else None
    worse = objective - best if instance.sense == "minimize" else best - objective
    return max(0.0, worse / abs(best))


def same(one: float | None, other: float | None) -> bool:
    """Whether two figures are the same to the digits that tables show."""
    return one is not None and other is not None and abs(one - other) <= SAME * max(abs(one), abs(other))


def filled(text: str) -> str:
    """Sentences as one paragraph."""
    return " ".join(text.split())


def picture(family: str, path: Path, folder: Path = quoted.FOLDER) -> bool:
    """Bars of some methods on some instances, relative to the best known; whether there is anything to draw."""
    if family not in PICTURED:
        return False
    methods, names, title = PICTURED[family]
    runs = {(run.instance, run.method): run for run in reversed(quoted.read(family, folder)) if run.answered}
    results = [shown(family, runs[name, method]) for name in names for method in methods if (name, method) in runs]
    if results:
        plots.save(plots.comparison(results, title), path)
    return bool(results)


def shown(family: str, run: quoted.Run) -> Any:
    """A run as pictures take it, beside the best known bound."""
    instance = quoted.instance_of(f"{family}/{run.instance}")
    row = {"objective": run.objective, "sense": instance.sense, "instance_digest": instance.digest}
    row |= {"instance": run.instance, "family": family, "method": run.method, "status": "feasible"}
    return recorded(row, bound=known(f"{family}/{run.instance}")[1])


BENCH = Benchmark(
    gaps,
    in_all=False,
    pages=False,
    store=Option(None, "as `ddlopt bench` writes it; without one it is run", type=Path, positional=True),
    suite=Option(None, "what to run in place of the default suite; not kept", quick="topology/tiny-*"),
    time_limit=Option(None, "seconds for each solve, if a suite is run", quick=0.5, type=float),
    into=Option(quoted.FOLDER, "folder of the runs that are kept", quick=ROOT / "build/quick-runs", type=Path),
    note=Option("", "a sentence on how the runs were made"),
)
