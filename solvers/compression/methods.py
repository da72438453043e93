"""The methods of the family, and which one is taken where none is named."""

from collections.abc import Callable
from functools import partial
from importlib import import_module

from ddlopt.models.compression import CompressionProblem
from ddlopt.solvers.contracts import Entry, Method
from ddlopt.solvers.makers import formulation, heuristic

FAMILY = "compression"

_formulation = partial(formulation, FAMILY)
_heuristic = partial(heuristic, FAMILY)


def _entry(name: str, kind: str, summary: str, make: Callable[[str], Method]) -> Entry:
    return Entry(name, FAMILY, kind, summary, make)


def _best(solver: str) -> Method:
    method: Method = import_module("ddlopt.solvers.compression.best").Best(solver)
    return method


ENTRIES = (
    _entry("exact", "exact", "the exact method that fits the problem", _best),
    _entry("min-cut", "exact", "sufficient factors: a minimum cut", _heuristic("sfb.min_cut", "MinCut")),
    _entry(
        "milp",
        "exact",
        "sufficient factors, also under budgets",
        _formulation("milp", "sfb.formulations.sfb_milp", "SfbMilp"),
    ),
    _entry(
        "lp", "exact", "the linear relaxation of milp, whose vertices are integral", _heuristic("sfb.sfb_lp", "SfbLp")
    ),
    _entry(
        "parametric-cut",
        "heuristic",
        "minimum cuts at prices of the budgets, and their bound",
        _heuristic("sfb.parametric_cut", "ParametricCut"),
    ),
    _entry("tag", "heuristic", "what is optimal for the costs of TAG's code", _heuristic("sfb.rules", "Tag")),
    _entry("poseidon", "heuristic", "Poseidon's rule for dense layers", _heuristic("sfb.rules", "Poseidon")),
    _entry(
        "factor-rule", "heuristic", "each gradient by itself, in closed form", _heuristic("sfb.rules", "FactorRule")
    ),
    _entry(
        "overlap-timeline",
        "exact",
        "options on the timeline, without big-M",
        _formulation("overlap-timeline", "timeline.formulations.overlap_timeline", "OverlapTimeline"),
    ),
    _entry(
        "label-setting",
        "exact",
        "Pareto labels along the timeline, by dynamic programming",
        _heuristic("timeline.label_setting.label_setting", "LabelSetting"),
    ),
    _entry(
        "priced-choices",
        "heuristic",
        "our search at prices of both lanes and of the error",
        _heuristic("timeline.priced_choices.priced_choices", "PricedChoices"),
    ),
    _entry("espresso", "heuristic", "Espresso's greedy with its sizes", _heuristic("timeline.espresso", "Espresso")),
    _entry(
        "espresso-all-sizes",
        "heuristic",
        "Espresso's greedy, any option for any size",
        _heuristic("timeline.espresso", "Espresso", thresholds=False),
    ),
    _entry(
        "secopa", "heuristic", "HiPress's SeCoPa: each gradient for itself", _heuristic("timeline.secopa", "Secopa")
    ),
    _entry(
        "lgreco", "heuristic", "L-GreCo's dynamic program on sizes and errors", _heuristic("timeline.lgreco", "LGreco")
    ),
    _entry(
        "convex-levels",
        "heuristic",
        "the convex relaxation to continuous levels, rounded",
        _heuristic("levels.convex_levels", "ConvexLevels"),
    ),
    _entry(
        "water-filling",
        "heuristic",
        "levels at one price of error, without overlap",
        _heuristic("levels.water_filling", "WaterFilling"),
    ),
    _entry(
        "uniform",
        "heuristic",
        "the same rank, bits or density for every gradient",
        _heuristic("levels.uniform_levels", "UniformLevels"),
    ),
    _entry("none", "heuristic", "nothing duplicated or compressed", _heuristic("trivial_plans", "Nothing")),
    _entry(
        "all", "heuristic", "all duplicated or compressed as far as may be", _heuristic("trivial_plans", "Everything")
    ),
)


def default_method(instance: CompressionProblem) -> str:
    """``exact``, at any size."""
    return "exact"
