"""The finding: how far heuristics are from the optimum, as a table and a picture a family, from a sweep's results.

    ddlopt bench default --store results.sqlite
    python benchmarks suite/gaps results.sqlite --write docs/results

Each row compares with the best known solution (of the library, or a better one of the sweep): how much more time, or
less utility, a method's solution has; the median over the seeds. ``gap left`` is the distance of the best known from
the best known bound, of the library's records or of the sweep. Without a store the default suite is run first, for an
hour or two.
"""

import json
import re
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from benchmarks.harness import DDLOPT, Benchmark, Option, command
from ddlopt import instances
from ddlopt.analysis import plots, tables
from ddlopt.analysis.bench import Store
from ddlopt.analysis.bench.figures.statistics import gap_to_best
from ddlopt.analysis.bench.report.data import read
from ddlopt.analysis.bench.report.sources import Sources
from ddlopt.analysis.bench.report.summary import gap_or_infinite
from ddlopt.solvers import catalogue
from ddlopt.solvers.certified import recorded
from ddlopt.solvers.contracts import best_bound, best_objective, relative_gap

HEADS = {
    "topology": """# Topology: how far each method is from the best known design

How much longer an iteration takes than with the best known design, whose distance from the optimum is at most
*gap left* ([topology.md](../families/topology.md)).
""",
    "scheduling": """# Scheduling: how far each method is from the best known schedule

How much less utility, or more time, than the best known schedule, whose distance from the optimum is at most
*gap left* ([scheduling.md](../families/scheduling.md)).
""",
    "compression": """# Compression: how far each method is from the best known plan

How much more time (or error, where that is minimised) than the best known plan, whose distance from the optimum is at
most *gap left* ([compression.md](../families/compression/index.md)).
""",
    "codesign": """# Co-design: how far each method is from the best known plan

How much longer an iteration takes than with the best known plan, whose distance from the optimum is at most *gap left*
([codesign.md](../families/codesign.md#how-far-everything-is-from-the-bound)), and which part of it is left by the
search for topologies and which by that for strategies.
""",
    "deployment": """# Deployment: how far each method is from the best known plan

How much longer a step takes than with the best known plan, whose distance from the optimum is at most *gap left*
([deployment.md](../families/deployment/index.md)).
""",
    "aggregation": """# Aggregation: how far each method is from the best known answer

How much worse the objective of each method is than the best known one, whose distance from the optimum is at most
*gap left* ([aggregation.md](../families/aggregation/index.md)).
""",
    "gossip": """# Gossip: how far each method is from the best known answer

How much larger the factor, or smaller the rate, is than the best known one, whose distance from the optimum is at most
*gap left* ([gossip.md](../families/gossip/index.md)).
""",
}
TITLES = {
    "plan": "Where groups of operators run",
    "sfb": "Sufficient factors",
    "timeline": "Which compressor for which gradient",
    "levels": "How much to compress",
}
"""Of problems, where they are not called by their names."""
PICTURED = {
    "topology": (
        ("exact", "link-exchange", "topology-finder", "topology-finder-released"),
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
        ("joint", "alternating", "alternating-exact", "data-parallel"),
        (
            *("bert-n12-d4", "candle-n12-d4", "dlrm-n12-d4", "ncf-n12-d4", "resnet50-n12-d4", "vgg16-n12-d4"),
            *("dlrm-n128-d4", "ncf-n128-d4"),
        ),
        "Iteration time relative to the best found",
    ),
    "deployment": (
        ("exact", "plan-search", "tag-sfb", "mcmc", "data-parallel-speed", "heft"),
        (
            *("tiny-g4-m2-s4", "vgg19-testbed", "resnet101-testbed", "inception-v3-testbed", "bert-small-testbed"),
            *("transformer-base-two-machines", "bert-large-drawn-s3"),
        ),
        "Time of a training step relative to the best found",
    ),
    "aggregation": (
        ("exact", "graph-search", "lp-rounding", "takahashi-matsuyama", "first-switch", "max"),
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
}
"""By family: methods, instances and the title of the picture."""
MOST_PICTURED = 12
"""Instances in the picture of a family that is not named above."""
DETAILS = {"codesign": {"of topology": "gap_of_topology", "of strategies": "gap_of_strategies"}}
"""By family: columns on what the gap left consists of, from the run that has the best bound."""


def gaps(asked):
    """A page for each family."""
    with tempfile.TemporaryDirectory() as folder:
        path = asked.store or Path("results.sqlite")
        if asked.suite:
            path = Path(folder) / "results.sqlite"
        if asked.store is None:
            limit = ["--time-limit", asked.time_limit] if asked.time_limit else []
            command([*DDLOPT, "bench", asked.suite or "default", *limit, "--store", path], quiet=False)
        with Store(path, write=False) as store, store.snapshot():
            data = read(store, target=0.01)
            details = {row["rowid"]: row["details"] for row in store.rows(["rowid", "details"])}
    runs = data.ranked.assign(details=data.ranked["id"].map(details), label=data.ranked["label"].astype(str))
    for family, own in runs.groupby(runs["family"].astype(str)):
        if asked.families and family not in asked.families:
            continue
        text = page(str(family), own, data.instances, asked.note)
        yield text.rstrip()
        if asked.write:
            file = asked.write / f"{family}_gap.png"
            if picture(str(family), own, file):
                text += f"\n![Relative to the best found, some of the instances]({file.name})\n"
            (asked.write / f"{family}_gap.md").write_text(text)


def page(family: str, runs: pd.DataFrame, known: Mapping[str, Mapping[str, Any]], note: str) -> str:
    """A table of a family under its title; where its instances are of several problems, one of each."""
    machines = {f"{of['cpu']}, {of['cores']} cores" for of in map(json.loads, runs["machine"].astype(str)) if of}
    head = HEADS.get(family, f"# {family.capitalize()}: how far each method is from the best known answer\n")
    facts = [f"Limits of a run: {'; '.join(Sources(runs).limits)}", *sorted(machines), note.removesuffix(".")]
    told = ". ".join(fact for fact in facts if fact) + ".\n"
    problems: dict[str, list[dict[str, str]]] = {}
    order = [method for method in catalogue.method_names(family) if method in set(runs["label"])]
    order += sorted(set(runs["label"]) - set(order))
    by_name = {str(name): own for name, own in runs.groupby(runs["instance"].astype(str))}
    for name in sorted(by_name, key=natural):
        own = by_name[name]
        instance = known[str(own["instance_digest"].iloc[0])]
        sizes = dict(instance["sizes"])
        problem = str(sizes.pop("problem", ""))
        problems.setdefault(problem, []).append(row_of(family, own, instance, sizes, order))
    written = (
        f"## {TITLES.get(problem, problem)}\n\n{table(rows, order)}" if problem else table(rows, order)
        for problem, rows in problems.items()
    )
    return "\n".join([head, told, *written])


def table(rows: Sequence[Mapping[str, str]], methods: Sequence[str]) -> str:
    """The rows without methods that were run on none of them."""
    idle = {method for method in methods if all(row[method] == tables.NONE for row in rows)}
    columns = [column for column in rows[0] if column not in idle]
    lines = [columns, ["---"] + ["---:"] * (len(columns) - 1), *([row[column] for column in columns] for row in rows)]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def row_of(
    family: str, runs: pd.DataFrame, instance: Mapping[str, Any], sizes: Mapping[str, Any], methods: Sequence[str]
) -> dict[str, str]:
    """What is known of an instance, and how far from the best known each method is."""
    maximise = instance["sense"] == "maximize"
    recorded, proven = of_library(family, instance)
    best = best_objective((none_of(runs["best_objective"].iloc[0]), recorded), instance["sense"])
    bounds = {place: bound for place, bound in zip(runs["id"], runs["bound"], strict=True) if bound == bound}
    bound = best_bound((*bounds.values(), proven), instance["sense"])
    row = {
        "instance": str(instance["name"]),
        **{header: str(size) for header, size in sizes.items()},
        "best known": tables.objective_text(best, instance["unit"]),
        "bound": tables.objective_text(bound, instance["unit"], like=best),
        "gap left": tables.NONE if best is None else tables.gap_text(relative_gap(best, bound, instance["sense"])),
    }
    if family in DETAILS:
        sharpest = best_bound(bounds.values(), instance["sense"])
        told = [json.loads(text) for place, text in zip(runs["id"], runs["details"], strict=True)
                if bounds.get(place) == sharpest]  # fmt: skip
        for column, name in DETAILS[family].items():
            row[column] = tables.gap_text(next((each[name] for each in told if name in each), None))
    answered = runs[runs["answered"]]
    gaps = gap_to_best(answered["objective"], float("nan") if best is None else best, maximise)
    losses = pd.Series(gaps, dtype=float).groupby(answered["label"].to_numpy()).median()
    for method in methods:
        loss = none_of(losses.get(method))
        row[method] = tables.NONE if loss is None else gap_or_infinite(max(0.0, loss))
    return row


def of_library(family: str, instance: Mapping[str, Any]) -> tuple[float | None, float | None]:
    """The objective and the bound that the library's records have of an instance."""
    name = f"{family}/{instance['name']}"
    known = instances.record(name) if name in instances.names() else None
    if known is None or known.instance_digest != instance["digest"]:
        return None, None
    return known.found and known.found.objective, known.bound and known.bound.value


def picture(family: str, runs: pd.DataFrame, path: Path) -> bool:
    """Bars of some methods on some instances, relative to the best known; whether there is anything to draw."""
    methods, names, title = PICTURED.get(family, (None, None, "Objective relative to the best found"))
    shown = runs[runs["answered"]].sort_values(["seed", "id"])
    if methods is not None and names is not None:
        shown = shown[shown["label"].isin(methods) & shown["instance"].isin(names)]
    shown = shown.drop_duplicates(["instance_digest", "label"])
    results = []
    for name in names or sorted(set(shown["instance"].astype(str)), key=natural)[:MOST_PICTURED]:
        own = shown[shown["instance"].astype(str) == name]
        everything = runs[runs["instance"].astype(str) == name]
        for method in methods or sorted(set(own["label"])):
            for run in own[own["label"] == method].itertuples():
                bound = best_bound((each for each in everything["bound"] if each == each), run.sense)
                results.append(recorded(run._asdict(), instance=name, family=family, method=method, bound=bound))
    if results:
        plots.save(plots.comparison(results, title), path)
    return bool(results)


def none_of(value: float | None) -> float | None:
    """None where there is no figure."""
    return None if value is None or value != value else float(value)


def natural(name: str) -> list[tuple[int, str]]:
    """So that n12 comes after n6."""
    return [(int(part), "") if part.isdigit() else (-1, part) for part in re.split(r"(\d+)", name)]


BENCH = Benchmark(
    gaps,
    in_all=False,
    pages=False,
    store=Option(None, "as `ddlopt bench` writes it; without one it is run", type=Path, positional=True),
    suite=Option(None, "what to run in place of the default suite; not kept", quick="topology/tiny-*"),
    time_limit=Option(None, "seconds for each solve, if a suite is run", quick=0.5, type=float),
    families=Option([], "of these alone", type=str),
    note=Option("", "a sentence on how the runs were made"),
)
