"""Heuristics of the papers against proven optima: three pillars with a table and a picture each, the rest in a line.

Run by `make demo`; a minute or two on two cores, most of it compiling kernels, which happens once.
"""

import argparse
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from rich import box
from rich.table import Table

import ddlopt
from ddlopt.analysis import plots, tables
from ddlopt.analysis.warm_up import kernel_modules, warm_up
from ddlopt.cli.shared.display import LiveLine, out_console
from ddlopt.solvers.contracts import Result, best_bound, relative_gap


class Pillar(NamedTuple):
    """What is decided, the cases as (instance, in words, methods), and the instance that is drawn."""

    title: str
    cases: tuple[tuple[str, str, tuple[str, ...]], ...]
    drawn: str


PILLARS = (
    Pillar(
        "Topology: optical links, rings and routes of one training job",
        (
            ("topology/dlrm-n12-d4", "recommendation (DLRM)", ("topology-finder", "link-exchange")),
            ("topology/hybrid-n8-d3-s1", "rings of 8 and of 4", ("topology-finder", "rings-and-routes")),
            ("topology/danoint", "MIPLIB, no all-reduce", ("topology-finder", "branch-and-bound")),
        ),
        "topology/danoint",
    ),
    Pillar(
        "Scheduling: workers for ring-all-reduce jobs over time",
        (
            ("scheduling/departures-half", "the greedy at its worst", ("gadget", "job-plans")),
            ("scheduling/elastic-j20-t20-g16", "a usual instance", ("gadget", "job-plans")),
            ("scheduling/philly-hour-j49-t48-g32", "an hour of Philly", ("gadget", "job-plans")),
        ),
        "scheduling/elastic-j20-t20-g16",
    ),
    Pillar(
        "Compression: which gradients to compress, or to send as sufficient factors",
        (
            ("compression/sfb-bert-base-b3-w2-tag", "TAG's own job", ("tag", "min-cut")),
            ("compression/sfb-bert-base-b4-w2-25g", "another network", ("tag", "min-cut")),
            ("compression/espresso-resnet101-dgc-pcie", "Espresso's own job", ("espresso", "exact")),
        ),
        "compression/espresso-resnet101-dgc-pcie",
    ),
)
OTHERS = (
    ("codesign/tiny-overlap-n4-d2", "TopoOpt alternates, ours decides at once", ("alternating", "joint")),
    ("deployment/stages-n120-k6", "PipeDream's stages, the best ones", ("pipedream", "ideals")),
    ("aggregation/slots-racks-n16", "SwitchML's equal slots, the best ones", ("slot-rule:rule=equal", "slot-prices")),
    ("gossip/abilene-n11-averaging", "Metropolis' weights, the fastest ones", ("metropolis", "fastest-weights")),
    ("cluster/placement-crossings-r12", "Kueue's best fit, the fewest crossings", ("kueue", "domain-uses")),
)
LIMITS_S = {"scheduling/elastic-j20-t20-g16": 5.0}
"""Less time than for the others, where the last hundredth of a percent would take a minute."""
READ_ON = """Read on: docs/families/topology.md, docs/families/scheduling.md,
docs/families/compression/index.md; the other families are in docs/index.md."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=Path("demo"), help="folder for the pictures")
    parser.add_argument("--time-limit", type=float, default=60.0, help="seconds for each method on each instance")
    parser.add_argument("--only", help="one family")
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    pillars = [pillar for pillar in PILLARS if options.only in (None, pillar.drawn.partition("/")[0])]
    others = OTHERS if options.only is None else ()

    cases = [case for pillar in pillars for case in pillar.cases] + list(others)
    methods = {f"{name.partition('/')[0]}/{method}": None for name, _, asked in cases for method in asked}
    warm_up(kernel_modules(list(methods)))
    console = out_console()
    for pillar in pillars:
        answers = [solved(name, asked, options.time_limit) for name, _, asked in pillar.cases]
        console.print(pillar.title, style="bold")
        console.print(table(pillar, answers))
        path = options.out / f"{pillar.drawn.partition('/')[0]}.png"
        drawn = next(answer for case, answer in zip(pillar.cases, answers, strict=True) if case[0] == pillar.drawn)
        plots.save(plots.solutions(drawn, [ddlopt.load(pillar.drawn)]), path)
        print(f"picture: {path}\n")
    if others:
        print("The other families, a heuristic against the optimum:\n")
    for name, words, asked in others:
        answers = solved(name, asked, options.time_limit)
        (_, first, gap, _), (_, second, verdict, _) = rows(answers)
        print(f"  {name.partition('/')[0]:<12} {words}:\n  {'':<12} {first} ({gap}) against {second} ({verdict})")
    print(f"\n{READ_ON}")


def solved(name: str, methods: Sequence[str], time_limit: float) -> list[Result]:
    """Answers of the methods, with a live line on a terminal."""
    instance = ddlopt.load(name)
    threads = 2 if "branch-and-bound" in methods else 1
    limit_s = LIMITS_S.get(name, time_limit)
    with LiveLine([instance]) as line:
        return ddlopt.compare([instance], methods, time_limit=limit_s, threads=threads, progress=line)


def rows(answers: Sequence[Result]) -> Iterator[tuple[str, str, str, str]]:
    """Method, objective, gap to the best bound of all, and seconds without compiling, of every answer."""
    bound = best_bound((answer.bound for answer in answers), answers[0].sense)
    for answer in answers:
        verdict = "no answer in time"
        if answer.objective is not None and bound is not None:
            gap = relative_gap(answer.objective, bound, answer.sense)
            verdict = "optimal, proven" if gap is not None and gap <= tables.PROVEN else tables.gap_text(gap)
        objective = tables.objective_text(answer.objective, answer.unit, digits=4)
        yield answer.method, objective, verdict, f"{answer.runtime_s:.1f} s"


def table(pillar: Pillar, answers: Sequence[Sequence[Result]]) -> Table:
    """A table of a pillar that fits on 80 columns."""
    drawn = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for header in ("case", "method", "result", "gap", "time"):
        drawn.add_column(header, justify="left" if header in ("case", "method") else "right", no_wrap=True)
    for (_, words, _), answer in zip(pillar.cases, answers, strict=True):
        for place, row in enumerate(rows(answer)):
            drawn.add_row("" if place else words, *row, end_section=place + 1 == len(answer))
    return drawn


if __name__ == "__main__":
    main()
