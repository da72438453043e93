"""The last step of every method: the independent check, the bounds, the status."""

from collections.abc import Mapping
from typing import Any

from ddlopt.models.catalogue import family
from ddlopt.models.contracts import Instance, Solution
from ddlopt.models.errors import SolverError
from ddlopt.solvers.contracts import Limits, Result, Status, TracePoint, provenance, relative_gap

CLAIM_TOLERANCE = 1e-6
"""Relative difference up to which a claimed objective counts as the one that ``evaluate`` finds."""


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
) -> Result:
    """Check ``solution``, merge ``bound`` with the combinatorial one and give the result.

    Raises
    ------
    SolverError
        If the solution violates a constraint, its objective is not the ``claimed`` one, or a bound exceeds it.
    """
    kind = family(instance.family)
    evaluation = kind.evaluate(instance, solution)
    if evaluation.violations or evaluation.objective is None:
        first, *others = evaluation.violations
        more = f" (and {len(others)} more)" if others else ""
        raise SolverError(f"{method} on '{instance.name}' gave a solution that fails the check: {first}{more}")
    objective = float(evaluation.objective)
    if claimed is not None and abs(claimed - objective) > CLAIM_TOLERANCE * max(abs(objective), abs(claimed)):
        raise SolverError(f"{method} on '{instance.name}' claims {claimed:.12g}, but evaluate finds {objective:.12g}")

    known = [b for b in (bound, kind.lower_bound(instance)) if b is not None]
    best_bound = max(known, default=None)
    for name, value in (("bound", best_bound), ("bound within its scope", scope_bound)):
        if value is not None and value > objective + CLAIM_TOLERANCE * abs(objective):
            raise SolverError(
                f"{method} on '{instance.name}': {name} {value:.12g} exceeds the checked objective {objective:.12g}"
            )
    if best_bound is not None:
        # A dual bound may exceed the optimum by the solver's tolerance; the checked solution is the better witness.
        best_bound = min(best_bound, objective)
    gap = relative_gap(objective, best_bound)
    return Result(
        instance=instance.name,
        instance_digest=instance.digest,
        family=instance.family,
        method=method,
        status=Status.OPTIMAL if gap is not None and gap <= max(limits.gap, CLAIM_TOLERANCE) else Status.FEASIBLE,
        objective=objective,
        bound=best_bound,
        solution=solution,
        checked=True,
        scope=scope,
        scope_bound=None if scope_bound is None else min(scope_bound, objective),
        runtime_s=runtime_s,
        trace=trace,
        details={**{name: float(value) for name, value in evaluation.details.items()}, **(details or {})},
        provenance=provenance(seed, limits.threads, **(versions or {})),
        message=message,
    )
