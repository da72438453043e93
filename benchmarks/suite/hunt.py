"""Bounds of a floating-point solver that are above the exact ones, over the library.

    python benchmarks suite/hunt --time-limit 5

The formulation by which a bundled instance has a certificate is given to HiGHS, gap 0, with presolve and without. What
HiGHS says of the optimum, its dual bound, is turned into a bound of the instance as the checker does it, in rational
numbers, and compared with the exact objective of the best known solution: a bound beyond that is wrong, by however
little. It is named with the part by which it is beyond; what HiGHS calls *optimal* or *infeasible* is told. Then the
tree's claim is tried: where the solver's bound is beyond the objective, no tree can prove it.
"""

from fractions import Fraction

import highspy
import numpy as np

from benchmarks.harness import Benchmark, Option
from ddlopt import instances
from ddlopt.certificates.linear.objective import bound_of
from ddlopt.frontier.linear_proof.tree import _relaxation
from ddlopt.instances.library import certificates
from ddlopt.models.catalogue import problem_of
from ddlopt.models.errors import DdloptError
from ddlopt.solvers import proofs

WAYS = {"presolve": "on", "no presolve": "off"}
MOST_CHECKING_S = 0.2
"""Of the check of a certificate: models that are read and solved in seconds."""


def names(asked):
    """Instances with a tree over a formulation."""
    for full, entry in sorted(certificates.entries().items()):
        chosen = not asked.names or full in asked.names or full.split("/")[0] in asked.names
        if chosen and entry.get("kind") == "linear" and entry["checking_s"] <= MOST_CHECKING_S:
            yield full, entry["method"]


def answer(model, presolve, limit_s):
    """What HiGHS says of a model, and its dual bound."""
    infinity = highspy.kHighsInf
    lower, upper = (
        np.array([fill if value is None else float(value) for value in limits])
        for limits, fill in ((model.lower, -infinity), (model.upper, infinity))
    )
    highs = _relaxation(model, lower, upper)
    whole = np.flatnonzero(model.integer).astype(np.int32)
    highs.changeColsIntegrality(len(whole), whole, np.array([highspy.HighsVarType.kInteger] * len(whole)))
    for option, value in (("presolve", presolve), ("solver", "choose"), ("mip_rel_gap", 0.0), ("mip_abs_gap", 0.0),
                          ("time_limit", limit_s)):  # fmt: skip
        highs.setOptionValue(option, value)
    highs.run()
    info = highs.getInfo()
    found = info.mip_dual_bound if len(whole) else info.objective_function_value
    return highs.modelStatusToString(highs.getModelStatus()), found


def compared(full, method, limit_s):
    """For each way of asking: what HiGHS says, and the part by which its bound is beyond the exact objective."""
    instance = instances.load(full)
    formulation = proofs.formulation_by(instance, method)
    model = proofs._model(instance, formulation)
    objective = Fraction(problem_of(instance).evaluate(instance, instances.best(full), exact=True).objective)
    sign = 1 if instance.sense == "minimize" else -1
    for way, presolve in WAYS.items():
        status, found = answer(model, presolve, limit_s)
        beyond = None
        if np.isfinite(found):
            bound = bound_of(formulation, instance, model.maximised, Fraction(float(found)))
            beyond = float(sign * (bound - objective) / abs(objective)) if objective else float(sign * bound)
        yield way, status, beyond


def beyond(asked):
    """Bounds that are beyond the exact objective, and how many were asked for."""
    counts = {way: [0, 0] for way in WAYS}
    for full, method in names(asked):
        try:
            for way, status, found in compared(full, method, asked.time_limit):
                counts[way][0] += 1
                if status == "Infeasible" or (found is not None and found > 0):
                    counts[way][1] += 1
                    part = "–" if found is None else f"{found:.1e}"
                    yield {"instance": full, "method": method, "options": way, "HiGHS says": status, "beyond by": part}
        except DdloptError as problem:
            print(f"{full}: {problem}", flush=True)
    for way, (asked_for, wrong) in counts.items():
        yield {"instance": f"all {asked_for}", "method": "", "options": way, "HiGHS says": f"{wrong} beyond",
               "beyond by": ""}  # fmt: skip


BENCH = Benchmark(
    beyond,
    names=Option([], "families or instances; all by default", ["scheduling/tiny-gangs"], str, positional=True),
    time_limit=Option(5.0, "seconds for each", 2.0),
    in_all=False,
)
