"""The methods of the family, and which one is taken where none is named."""

from importlib import import_module

from ddlopt.models.compression import CompressionProblem
from ddlopt.solvers.contracts import Method
from ddlopt.solvers.makers import entries

ROOM = "compression"


def _best(solver: str) -> Method:
    method: Method = import_module("ddlopt.solvers.compression.best").Best(solver)
    return method


ENTRIES = entries(
    ROOM,
    ("exact", "exact", "the exact method that fits the problem", _best),
    ("min-cut", "exact", "sufficient factors: a minimum cut", "sfb.min_cut:MinCut"),
    ("milp", "exact", "sufficient factors, also under budgets", "models:sfb.formulations.sfb_milp:SfbMilp"),
    ("parametric-cut", "heuristic", "minimum cuts at prices of the budgets, and their bound", "sfb.parametric_cut:ParametricCut"),
    ("tag", "heuristic", "what is optimal for the costs of TAG's code", "sfb.rules:Tag"),
    ("poseidon", "heuristic", "Poseidon's rule for dense layers", "sfb.rules:Poseidon"),
    ("factor-rule", "heuristic", "each gradient by itself, in closed form", "sfb.rules:FactorRule"),
    ("overlap-timeline", "exact", "options on the timeline, without big-M", "models:timeline.formulations.overlap_timeline:OverlapTimeline"),
    ("lane-timeline", "exact", "options on several lanes: links, processors, wire", "models:timeline.formulations.lane_timeline:LaneTimeline"),
    ("lane-search", "heuristic", "our search on several lanes: prices, then single changes", "timeline.lane_search:LaneSearch"),
    ("espresso", "heuristic", "Espresso's greedy with its sizes, or with any option for any size", "timeline.espresso:Espresso"),
    ("secopa", "heuristic", "HiPress's SeCoPa: each gradient for itself", "timeline.secopa:Secopa"),
    ("lgreco", "heuristic", "L-GreCo's dynamic program on sizes and errors", "timeline.lgreco:LGreco"),
    ("convex-levels", "heuristic", "the convex relaxation to continuous levels, rounded", "levels.convex_levels:ConvexLevels"),
    ("water-filling", "heuristic", "levels at one price of error, without overlap", "levels.water_filling:WaterFilling"),
    ("uniform", "heuristic", "the same rank, bits or density for every gradient", "levels.uniform_levels:UniformLevels"),
    ("forward-order", "exact", "options, parts and order before the next forward pass", "models:forward.formulations.forward_order:ForwardOrder"),
    ("forward-sides", "exact", "options, and what is sent before and after the last gradient", "models:forward.formulations.forward_sides:ForwardSides"),
    ("forward-counts", "exact", "the same, with identical gradients counted together", "models:forward.formulations.forward_sides:ForwardSides", {"first": 1, "last": 1, "every": 0}),
    ("forward-search", "heuristic", "our search from the wire that is interrupted at will, and its bound", "forward.forward_search:ForwardSearch"),
    ("wfbp", "heuristic", "gradients as they are ready, as PyTorch sends them", "forward.schedulers:Wfbp"),
    ("p3", "heuristic", "P3: slices of one size, those needed first", "forward.schedulers:P3"),
    ("bytescheduler", "heuristic", "ByteScheduler: parts of the best size, those needed first", "forward.schedulers:ByteScheduler"),
    ("none", "heuristic", "nothing duplicated or compressed", "trivial_plans:Nothing"),
    ("all", "heuristic", "all duplicated or compressed as far as may be", "trivial_plans:Everything"),
)  # fmt: skip


def default_method(instance: CompressionProblem) -> str:
    """``exact``, at any size."""
    return "exact"
