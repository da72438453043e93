"""Heuristics for the problem ``plan``."""

from functools import partial
from typing import Any

from ddlopt.solvers.contracts import Entry
from ddlopt.solvers.makers import heuristic

FAMILY = "deployment"


def _entry(name: str, summary: str, module: str, kind: str, **options: Any) -> Entry:
    return Entry(name, FAMILY, "heuristic", f"plan: {summary}", heuristic(FAMILY, module, kind, **options))


_factors = partial(_entry, module="plan.sufficient_factors", kind="WithFactors")
_list = partial(_entry, module="plan.list_scheduling", kind="ListScheduling")

ENTRIES = (
    _entry("tag", "TAG's tree search over plans of operator groups", "plan.tag", "Tag"),
    _entry("tag-bound", "TAG with a prior from the relaxation of the makespan bound", "plan.tag", "Tag", prior="bound"),
    _entry("tag-learned", "TAG with the prior of a graph network", "plan.tag", "Tag", prior="learned"),
    _factors("tag-sfb", "TAG, then sufficient factors by a minimum cut", search="tag"),
    _entry("plan-search", "our local search on groups and runs of groups", "plan.search", "PlanSearch"),
    _entry(
        "local-branching",
        "our neighbourhoods of a plan by the makespan bound; with its bound",
        "plan.local_branching",
        "LocalBranching",
    ),
    _entry("mcmc", "FlexFlow's Markov chain over actions of groups", "plan.mcmc", "PlanMcmc"),
    _entry("data-parallel", "a replica on every device, the batch split evenly", "plan.data_parallel", "DataParallel"),
    _factors("data-parallel-sfb", "the same, then sufficient factors by a minimum cut", search="data-parallel"),
    _factors(
        "plan-search-sfb",
        "our local search on groups and on what is duplicated, in turn",
        search="plan-search",
        how="joint",
    ),
    _entry(
        "data-parallel-speed",
        "data parallelism with the batch split by speed",
        "plan.data_parallel",
        "DataParallel",
        split="speed",
    ),
    _list("heft", "HEFT: each group on the device where it ends first", rule="heft"),
    _list("m-etf", "Baechi's earliest task first, with memory", rule="m-etf"),
    _list("m-sct", "the same with favourite children, by a linear program", rule="m-sct"),
)
