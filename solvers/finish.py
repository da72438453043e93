"""The last step of every method: the independent check, the bounds, the status."""

from collections.abc import Mapping
from typing import Any

from ddlopt.models.catalogue import family
from ddlopt.models.contracts import Instance, Solution
from ddlopt.models.errors import SolverError
from ddlopt.solvers.contracts import (
    Limits,
    Result,
    Status,
    TracePoint,
    best_bound,
    best_objective,
    better,
    provenance,
    relative_gap,
)

CLAIM_TOLERANCE = 1e-6
"""Relative difference up to which a claimed objective counts as the one that ``evaluate`` finds."""
_ROUNDING = 1e-9
"""Absolute difference that counts as none in an objective without unit, which may be a sum whose parts cancel."""


def finish(
    instance: Instance,
    method: str,
    solution: Solution,
    *,
    runtime_s: float,
    limits: Limits,
    seed: int = 0,
    claimed: float | None = None,
    bound: float | None = None,
    scope: str | None = None,
    scope_bound: float | None = None,
    trace: tuple[TracePoint, ...] = (),
    details: Mapping[str, Any] | None = None,
    versions: Mapping[str, Any] | None = None,
    message: str = "",
    interrupted: bool = False,
) -> Result:
    """Check ``solution``, merge ``bound`` with the combinatorial one and give the result.

    Raises
    ------
    SolverError
        If the solution violates a constraint, its objective is not the ``claimed`` one, or it is better than a bound.
    """
    kind = family(instance.family)
    evaluation = kind.evaluate(instance, solution)
    if evaluation.violations or evaluation.objective is None:
        first, *others = evaluation.violations
        more = f" (and {len(others)} more)" if others else ""
        raise SolverError(f"{method} on '{instance.name}' gave a solution that fails the check: {first}{more}")
    objective = float(evaluation.objective)
    rounding = 0.0 if instance.objective_unit else _ROUNDING
    if claimed is not None and abs(claimed - objective) > rounding + CLAIM_TOLERANCE * max(
        abs(objective), abs(claimed)
    ):
        raise SolverError(f"{method} on '{instance.name}' claims {claimed:.12g}, but evaluate finds {objective:.12g}")

    sense = instance.sense
    tightest = best_bound((bound, kind.bound(instance)), sense)
    slack = rounding + CLAIM_TOLERANCE * abs(objective)
    for name, value in (("bound", tightest), ("bound within its scope", scope_bound)):
        if value is not None and better(objective, value - slack if sense == "minimize" else value + slack, sense):
            relation = "exceeds" if sense == "minimize" else "is below"
            raise SolverError(
                f"{method} on '{instance.name}': {name} {value:.12g} {relation} the checked objective {objective:.12g}"
            )
    # A dual bound may pass the optimum by the solver's tolerance; the checked solution is the better witness.
    tightest = None if tightest is None else best_objective((tightest, objective), sense)
    gap = relative_gap(objective, tightest, sense)
    return Result(
        instance=instance.name,
        instance_digest=instance.digest,
        family=instance.family,
        method=method,
        status=Status.OPTIMAL if gap is not None and gap <= max(limits.gap, CLAIM_TOLERANCE) else Status.FEASIBLE,
        objective=objective,
        bound=tightest,
        solution=solution,
        checked=True,
        scope=scope,
        scope_bound=None if scope_bound is None else best_objective((scope_bound, objective), sense),
        runtime_s=runtime_s,
        trace=trace,
        details={**{name: float(value) for name, value in evaluation.details.items()}, **(details or {})},
        provenance=provenance(seed, limits.threads, **(versions or {})),
        message=message,
        sense=sense,
        unit=instance.objective_unit,
        interrupted=interrupted,
    )
