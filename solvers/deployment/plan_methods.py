"""The methods for the problem ``plan``."""

from functools import partial

from ddlopt.solvers.contracts import Entry
from ddlopt.solvers.makers import formulation, heuristic

FAMILY = "deployment"

_formulation = partial(formulation, FAMILY)
_heuristic = partial(heuristic, FAMILY)

ENTRIES: tuple[Entry, ...] = (
    Entry(
        "brute-force",
        FAMILY,
        "exact",
        "all plans of a small instance, by the fast simulator",
        _heuristic("brute_force", "BruteForce"),
    ),
)
