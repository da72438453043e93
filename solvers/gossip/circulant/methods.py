"""The methods for the problem ``circulant``."""

from ddlopt.models.gossip.circulant.instance import CirculantInstance
from ddlopt.solvers.contracts import Method
from ddlopt.solvers.makers import entries, formulation, heuristic

ROOM = "gossip/circulant"

_milp = {
    "gap": formulation(ROOM, "circulant-gap", "formulations.circulant_generators:CirculantGenerators"),
    "averaging": formulation(ROOM, "circulant-averaging", "formulations.circulant_generators:CirculantWeights"),
}


def best(instance: CirculantInstance, solver: str) -> Method:
    """The enumeration where there are few enough sets, otherwise the integer program."""
    enumeration = heuristic(ROOM, "enumeration:CirculantEnumeration")(solver)
    return enumeration if enumeration.refuses(instance) is None else milp(instance, solver)


def milp(instance: CirculantInstance, solver: str) -> Method:
    """The integer program for the goal."""
    return _milp[instance.goal](solver)


ENTRIES = entries(
    ROOM,
    ("circulant-enumeration", "exact", "all sets of generators up to multiplication by units", "enumeration:CirculantEnumeration"),
    ("circulant-gap", "exact", "generators with the largest spectral gap as a MILP", "models:formulations.circulant_generators:CirculantGenerators"),
    ("circulant-averaging", "exact", "generators and weights that average fastest as a MILP", "models:formulations.circulant_generators:CirculantWeights"),
    ("generator-exchange", "heuristic", "exchanges of one generator while they help", "rules:GeneratorExchange"),
    ("powers", "heuristic", "powers of a root of n", "rules:Powers"),
    ("geometric-rings", "heuristic", "rings through all workers in a geometric series", "rules:GeometricRings"),
    ("random-generators", "heuristic", "the best of 200 draws", "rules:RandomGenerators"),
)  # fmt: skip
