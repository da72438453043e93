"""The methods for the problem ``partition``."""

from functools import partial

from ddlopt.solvers.contracts import Entry
from ddlopt.solvers.makers import formulation, heuristic

FAMILY = "deployment"

_formulation = partial(formulation, FAMILY)
_heuristic = partial(heuristic, FAMILY)

ENTRIES: tuple[Entry, ...] = ()
