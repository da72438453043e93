"""What solves need, imported once by the server from which the processes of a sweep are forked."""

from importlib import import_module
from importlib.util import find_spec
from pkgutil import walk_packages

import numba

from ddlopt.models.catalogue import FAMILY_NAMES

import_module("ddlopt.analysis.compare")
import_module("cvxpy.cvxcore")
_storeys = ("models", "certificates", "solvers", "frontier")
_rooms = [f"ddlopt.{storey}.{family}" for storey in _storeys for family in FAMILY_NAMES]
for _package in [room for room in _rooms if find_spec(room) is not None]:
    for _module in walk_packages(import_module(_package).__path__, f"{_package}."):
        import_module(_module.name)
# The first compiled function of a process makes Numba import a third of a second's worth of itself.
numba.njit(lambda: 0)()
