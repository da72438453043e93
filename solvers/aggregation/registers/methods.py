"""The methods for the problem ``registers``."""

from collections.abc import Callable
from functools import partial

from ddlopt.models.aggregation.registers.instance import RegisterInstance
from ddlopt.solvers.contracts import Entry, Method
from ddlopt.solvers.makers import formulation, heuristic

FAMILY = "aggregation"

_formulation = partial(formulation, FAMILY)
_heuristic = partial(heuristic, FAMILY)


def _entry(name: str, kind: str, summary: str, make: Callable[[str], Method]) -> Entry:
    return Entry(name, FAMILY, kind, "registers: " + summary, make)


def best(instance: RegisterInstance, solver: str) -> Method:
    """An annealing and the relaxation's bound; then for packets the enumeration, for collisions the program."""
    return _opened("exact", _tree if instance.goal == "packets" else _counts, solver, relaxation=True)


def milp(instance: RegisterInstance, solver: str) -> Method:
    """The program by counts, after an annealing."""
    return _opened("milp", _counts, solver, relaxation=False)


def _opened(name: str, make: Callable[[str], Method], solver: str, relaxation: bool) -> Method:
    from ddlopt.solvers.aggregation.registers.search import RegisterSearch
    from ddlopt.solvers.opened import Opened

    return Opened(name, FAMILY, RegisterSearch(steps=1_000_000, relaxation=relaxation), lambda _: make(solver))


_counts = _formulation("register-counts", "registers.formulations.count_placement", "CountPlacement")
_tree = _heuristic("registers.enumeration", "RegisterTree")

ENTRIES: tuple[Entry, ...] = (
    _entry(
        "register-tree",
        "exact",
        "enumeration from the floor up, after an annealing",
        _heuristic("registers.enumeration", "RegisterTree"),
    ),
    _entry(
        "colouring",
        "exact",
        "whether every batch can be at its floor, by enumeration",
        _heuristic("registers.enumeration", "RegisterTree", only_floor=True),
    ),
    _entry(
        "register-counts",
        "exact",
        "the integer program by counts, from scratch",
        _formulation("register-counts", "registers.formulations.count_placement", "CountPlacement"),
    ),
    _entry(
        "register-pairs",
        "exact",
        "the min-R-partition program by pairs, for collisions",
        _formulation("register-pairs", "registers.formulations.pair_placement", "PairPlacement"),
    ),
    _entry("block", "heuristic", "in the order of their numbers", _heuristic("registers.dealing", "Block")),
    _entry("random-arrays", "heuristic", "at random, evenly", _heuristic("registers.dealing", "RandomArrays")),
    _entry(
        "heat-round-robin",
        "heuristic",
        "by heat, dealt round-robin (Libra)",
        _heuristic("registers.dealing", "HeatRoundRobin"),
    ),
    _entry(
        "snake",
        "heuristic",
        "by heat, dealt forth and back",
        _heuristic("registers.dealing", "HeatRoundRobin", snake=True),
    ),
    _entry(
        "heat-balance",
        "heuristic",
        "by heat, into the array with the least heat (ours)",
        _heuristic("registers.dealing", "HeatBalance"),
    ),
    _entry(
        "greedy-co-occurrence",
        "heuristic",
        "by heat, where it shares the fewest batches",
        _heuristic("registers.dealing", "GreedyCooccurrence"),
    ),
    _entry(
        "sdp-rounding",
        "heuristic",
        "random directions on the Frieze-Jerrum relaxation, with its bound",
        _heuristic("registers.rounding", "RelaxationRounding"),
    ),
    _entry(
        "register-search",
        "heuristic",
        "annealing by moves and swaps (ours)",
        _heuristic("registers.search", "RegisterSearch"),
    ),
)
