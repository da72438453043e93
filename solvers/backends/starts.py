"""Starts for solvers: what a solution leaves open in a model is filled in.

A formulation sets the variables that a solution speaks of, usually the whole-numbered ones. HiGHS completes such a
start by itself; others drop it (SCIP if most values are missing, CBC if it comes to nothing) or do not take it.
"""

import dataclasses

import numpy as np

from ddlopt.solvers.backends.highs import Highs
from ddlopt.solvers.backends.matrix import LinearModel, Vector, plain_model
from ddlopt.solvers.contracts import Limits

SHARE = 0.1
"""Part of a time limit that the filling may take."""


def completed(linear: LinearModel, limits: Limits) -> Vector | None:
    """Values of all columns: those that the variables have, or the best that go with the whole-numbered ones of them.

    None if no variable has a value, or nothing goes with them in the time there is.
    """
    given = np.array([np.nan if column.value is None else float(column.value) for column in linear.columns])
    known = ~np.isnan(given)
    if not known.any():
        return None
    if known.all():
        return given
    fixed = known & linear.integer
    if not fixed.any():
        return None
    values = np.round(given)
    held = dataclasses.replace(
        linear, lower=np.where(fixed, values, linear.lower), upper=np.where(fixed, values, linear.upper)
    )
    plain = plain_model(held)
    if plain is None:
        return None
    share = None if limits.time_s is None else SHARE * limits.time_s
    outcome = Highs().solve(plain, dataclasses.replace(limits, time_s=share))
    if outcome.objective is None:
        return None
    return np.array([plain.x[j].value for j in range(len(linear.columns))])
