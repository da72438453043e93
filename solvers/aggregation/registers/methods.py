"""The methods for the problem ``registers``."""

from collections.abc import Callable

from ddlopt.models.aggregation.registers.instance import RegisterInstance
from ddlopt.solvers import chain
from ddlopt.solvers.contracts import Method
from ddlopt.solvers.makers import entries, formulation

FAMILY, ROOM = "aggregation", "aggregation/registers"

_OPENING, _LONG_OPENING, _MANY = 1_000_000, 60_000_000, 100
"""Steps of the annealing before anything else, a second; a minute for more parameters, as enumeration sees little there."""
_LONG_SHARE = 0.6
"""Part of the time for the latter."""


def best(instance: RegisterInstance, solver: str) -> Method:
    """What links of the chain say; else an annealing, then the program by sets, or by counts if that is too large."""
    return chain.exact(ROOM, instance, solver, _own)


def _own(instance: RegisterInstance, solver: str) -> Method:
    if instance.goal != "packets" and _sets(solver).refuses(instance) is None:
        return opened(instance, "exact", _sets, solver, relaxation=False)
    return opened(instance, "exact", _counts, solver, relaxation=True)


def milp(instance: RegisterInstance, solver: str) -> Method:
    """The program by counts, after an annealing."""
    return opened(instance, "milp", _counts, solver, relaxation=False)


def opened(
    instance: RegisterInstance, name: str, make: Callable[[str], Method], solver: str, relaxation: bool
) -> Method:
    """An annealing, and then the method."""
    from ddlopt.solvers.aggregation.registers.search import RegisterSearch
    from ddlopt.solvers.wrappers.warm_started import OPENING_SHARE, WarmStarted

    many = instance.parameters > _MANY
    steps, share = (_LONG_OPENING, _LONG_SHARE) if many else (_OPENING, OPENING_SHARE)
    opening = RegisterSearch(steps=steps, relaxation=relaxation)
    return WarmStarted(name, FAMILY, opening, lambda _: make(solver), lambda _: share)


_counts = formulation(ROOM, "register-counts", "formulations.count_placement:CountPlacement")
_sets = formulation(ROOM, "register-sets", "formulations.set_placement:SetPlacement")

ENTRIES = entries(
    ROOM,
    ("register-counts", "exact", "the integer program by counts, from scratch", "models:formulations.count_placement:CountPlacement"),
    ("register-pairs", "exact", "the min-R-partition program by pairs, for collisions", "models:formulations.pair_placement:PairPlacement"),
    ("register-sets", "exact", "the set partition into what arrays can hold, for collisions", "models:formulations.set_placement:SetPlacement"),
    ("block", "heuristic", "in the order of their numbers", "dealing:Block"),
    ("random-arrays", "heuristic", "at random, evenly", "dealing:RandomArrays"),
    ("heat-round-robin", "heuristic", "by heat, dealt round-robin (Libra), or forth and back", "dealing:HeatRoundRobin"),
    ("heat-balance", "heuristic", "by heat, into the array with the least heat (ours)", "dealing:HeatBalance"),
    ("greedy-co-occurrence", "heuristic", "by heat, where it shares the fewest batches", "dealing:GreedyCooccurrence"),
    ("sdp-rounding", "heuristic", "random directions on the Frieze-Jerrum relaxation, with its bound", "rounding:RelaxationRounding"),
    ("register-search", "heuristic", "annealing by moves and swaps (ours)", "search:RegisterSearch"),
)  # fmt: skip
