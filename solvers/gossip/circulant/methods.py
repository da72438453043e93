"""The methods for the problem ``circulant``."""

from functools import partial

from ddlopt.models.gossip.circulant.instance import CirculantInstance
from ddlopt.solvers.contracts import Entry, Method
from ddlopt.solvers.makers import formulation, heuristic

FAMILY = "gossip"

_heuristic = partial(heuristic, FAMILY)
_milp = {
    "gap": formulation(FAMILY, "circulant-gap", "circulant.formulations.circulant_generators", "CirculantGenerators"),
    "averaging": formulation(
        FAMILY, "circulant-averaging", "circulant.formulations.circulant_generators", "CirculantWeights"
    ),
}


def best(instance: CirculantInstance, solver: str) -> Method:
    """The enumeration where there are few enough sets, otherwise the integer program."""
    enumeration = _heuristic("circulant.enumeration", "CirculantEnumeration")(solver)
    return enumeration if enumeration.refuses(instance) is None else milp(instance, solver)


def milp(instance: CirculantInstance, solver: str) -> Method:
    """The integer program for the goal."""
    return _milp[instance.goal](solver)


ENTRIES: tuple[Entry, ...] = (
    Entry(
        "circulant-enumeration",
        FAMILY,
        "exact",
        "circulant: all sets of generators up to multiplication by units",
        _heuristic("circulant.enumeration", "CirculantEnumeration"),
    ),
    Entry(
        "circulant-gap",
        FAMILY,
        "exact",
        "circulant: generators with the largest spectral gap as a MILP",
        _milp["gap"],
    ),
    Entry(
        "circulant-averaging",
        FAMILY,
        "exact",
        "circulant: generators and weights that average fastest as a MILP",
        _milp["averaging"],
    ),
    Entry(
        "generator-exchange",
        FAMILY,
        "heuristic",
        "circulant: exchanges of one generator while they help",
        _heuristic("circulant.rules", "GeneratorExchange"),
    ),
    Entry("powers", FAMILY, "heuristic", "circulant: powers of a root of n", _heuristic("circulant.rules", "Powers")),
    Entry(
        "geometric-rings",
        FAMILY,
        "heuristic",
        "circulant: rings through all workers in a geometric series",
        _heuristic("circulant.rules", "GeometricRings"),
    ),
    Entry(
        "random-generators",
        FAMILY,
        "heuristic",
        "circulant: the best of 200 draws",
        _heuristic("circulant.rules", "RandomGenerators"),
    ),
)
