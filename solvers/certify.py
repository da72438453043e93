"""The gate: what a method hands over becomes a result here, after the check, and nobody's word is taken for anything.

A method gives a :class:`MethodOutput`: a solution, a bound with its :class:`~ddlopt.models.contracts.Evidence`, and
figures. Objective, status, gap and the merging of bounds are ours. What is not finite is refused. A bound that is only
claimed, as those of methods of other packages are, is kept among the details as ``claimed_bound`` and serves for
nothing.
"""

import contextlib
import math
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, is_dataclass, replace
from typing import Any

import numpy as np

from ddlopt.models import announced_bounds
from ddlopt.models.catalogue import family
from ddlopt.models.contracts import Bound, Evidence, Instance, Sense, Solution
from ddlopt.models.errors import ContradictionError, InfeasibleError, SolverError
from ddlopt.models.problem import path_of
from ddlopt.models.tolerances import OBJECTIVE_TOL
from ddlopt.solvers import incumbents
from ddlopt.solvers.building import built
from ddlopt.solvers.contracts import (
    Limits,
    Result,
    Status,
    TracePoint,
    best_bound,
    better,
    provenance,
    relative_gap,
)

_SOON_S, _SOON = 0.5, 0.01
"""Seconds, and part of the limit, that a bound may take after it: most take far less."""
ROUNDING = 1e-9
"""Absolute difference that counts as none in an objective without unit, which may be a sum whose parts cancel."""


@dataclass(frozen=True)
class MethodOutput:
    """What a method has in the end, apart from what the clock knows: facts to be checked, no verdict.

    Parameters
    ----------
    solution : Solution or None
    details, versions : mapping
        Figures, and what was run (``solver``), for :attr:`Result.details` and :attr:`Result.provenance`.
    bound : float or None
        On the objective of every solution of the instance.
    scope : str or None
        The class of solutions searched, if that is not all of them.
    scope_bound : float or None
        On the objectives of the solutions within the scope.
    message : str
    evidence : Evidence
        Why the bounds are to be believed.
    """

    solution: Solution | None
    details: Mapping[str, Any] = field(default_factory=dict)
    bound: float | None = None
    scope: str | None = None
    scope_bound: float | None = None
    versions: Mapping[str, Any] = field(default_factory=dict)
    message: str = ""
    evidence: Evidence = Evidence.SOLVER


@dataclass(frozen=True)
class Gate:
    """One solve at the gate: what is ours to say about it.

    Parameters
    ----------
    instance : Instance
    method : str
    limits : Limits
    seed : int
    runtime_s, compile_s : float
        As we measured them.
    trace : tuple of TracePoint
    interrupted : bool
    exact : bool
        Evaluate in rational numbers: beside a proof, which has them too.
    leaf : str, optional
        What found and proved, where ``method`` does not say it.
    """

    instance: Instance
    method: str
    limits: Limits
    seed: int = 0
    runtime_s: float = 0.0
    compile_s: float = 0.0
    trace: tuple[TracePoint, ...] = ()
    interrupted: bool = False
    exact: bool = False
    leaf: str | None = None

    def certify(self, output: MethodOutput, claimed: float | None = None) -> Result:
        """Check the solution, merge the bounds by their evidence, and decide the status.

        Raises
        ------
        SolverError
            If the solution violates a constraint, its objective is not the ``claimed`` one, or a figure is not finite.
        ContradictionError
            If a bound, or that there is no solution, is refuted by the solution.
        """
        if output.solution is None:
            return self.without_solution(output)
        instance, sense = self.instance, self.instance.sense
        kind = family(instance.family)
        evaluation = kind.evaluate(instance, output.solution, exact=self.exact)
        if evaluation.violations or evaluation.objective is None:
            first, *others = evaluation.violations or ("its objective means nothing",)
            more = f" (and {len(others)} more)" if others else ""
            raise SolverError(f"{self._who} gave a solution that fails the check: {first}{more}")
        objective = self._finite(evaluation.objective, "objective")
        slack = _slack(objective, instance.objective_unit)
        if claimed is not None:
            said = self._finite(claimed, "claimed objective")
            if abs(said - objective) > slack:
                raise SolverError(f"{self._who} claims {said:.12g}, but evaluate finds {objective:.12g}")
        incumbents.tell(objective, output.solution)
        try:
            proven = self._combinatorial()
        except InfeasibleError as proof:
            raise ContradictionError(f"{self._who} has a solution that passes the check, but: {proof}") from None
        own, details = self._bound(output.bound, output.evidence), dict(output.details)
        scoped = self._bound(output.scope_bound, output.evidence)
        for name, claim in (("claimed_bound", own), ("claimed_scope_bound", scoped)):
            if claim is not None and not claim.counts:
                details[name] = claim.value
        said_by_others = announced_bounds.claimed(instance, path_of(instance))
        if said_by_others is not None:
            details["claimed_bound"] = best_bound((said_by_others, details.get("claimed_bound")), sense)
        claims = _beside_claim(details.get("claimed_bound"), objective, sense, instance.objective_unit)
        tightest = _tightest([each for each in (proven, own) if each is not None and each.counts], sense)
        scoped = scoped if scoped is not None and scoped.counts else None
        value, within = (
            None
            if each is None
            else beside(each.value, objective, sense, instance.objective_unit, f"{self._who}: {name}")
            for name, each in (("bound", tightest), ("bound within its scope", scoped))
        )
        gap = relative_gap(objective, value, sense)
        proven_best = gap is not None and gap <= max(self.limits.gap, OBJECTIVE_TOL)
        return Result(
            instance=instance.name,
            instance_digest=instance.digest,
            family=instance.family,
            method=self.method,
            status=Status.OPTIMAL if proven_best else Status.FEASIBLE,
            objective=objective,
            bound=value,
            evidence=None if tightest is None else tightest.evidence,
            found_by=self.leaf or self.method,
            proved_by=self._prover(tightest, proven),
            solution=output.solution,
            checked=True,
            scope=output.scope,
            scope_bound=within,
            runtime_s=self.runtime_s,
            compile_s=self.compile_s,
            trace=self._backed(value, objective, slack),
            details={**{name: float(value) for name, value in evaluation.details.items()}, **details},
            provenance=provenance(self.seed, self.limits.threads, **output.versions),
            message="; ".join(dict.fromkeys(filter(None, (output.message, claims)))),
            sense=sense,
            unit=instance.objective_unit,
            interrupted=self.interrupted,
        )

    def without_solution(self, output: MethodOutput, infeasible: Evidence | None = None) -> Result:
        """The result of a method that has no solution; ``infeasible`` says why it holds that there is none.

        Without evidence that counts there is no proof of that, and the status is ``no_solution``.
        """
        status, message, proven, evidence = Status.NO_SOLUTION, output.message, None, None
        try:
            proven = self._combinatorial()
        except InfeasibleError as proof:
            status, evidence = Status.INFEASIBLE, Evidence.COMBINATORIAL
            message = message if infeasible in (Evidence.SOLVER, Evidence.CERTIFICATE) and message else str(proof)
        if status is Status.NO_SOLUTION and infeasible is not None:
            if infeasible is Evidence.CLAIMED:
                message = f"says that there is no solution, without evidence; {message}".rstrip("; ")
            else:
                status, evidence = Status.INFEASIBLE, infeasible
        details = dict(output.details)
        own, scoped = (self._bound(each, output.evidence) for each in (output.bound, output.scope_bound))
        if own is not None and not own.counts:
            details["claimed_bound"] = own.value
        tightest = None
        if status is Status.NO_SOLUTION:
            known = [each for each in (proven, own) if each is not None and each.counts]
            tightest = _tightest(known, self.instance.sense)
            evidence = None if tightest is None else tightest.evidence
        return self._empty(
            status,
            message,
            details,
            output.versions,
            bound=None if tightest is None else tightest.value,
            evidence=evidence,
            proved_by=self._prover(tightest, proven),
            scope=output.scope,
            scope_bound=scoped.value if scoped is not None and scoped.counts else None,
        )

    def reference(
        self,
        objective: float,
        details: Mapping[str, Any],
        message: str,
        bound: float | None = None,
        scope: str | None = None,
        scope_bound: float | None = None,
        versions: Mapping[str, Any] | None = None,
    ) -> Result:
        """A figure of ours for another network: nothing to check, and never used against a solution.

        Raises
        ------
        ContradictionError
            If a bound is on the wrong side of the figure.
        """
        said, instance = self._finite(objective, "figure"), self.instance
        bounds = [self._bound(each, Evidence.SOLVER) for each in (bound, scope_bound)]
        value, scoped = (
            None if each is None else beside(each.value, said, instance.sense, instance.objective_unit, self._who)
            for each in bounds
        )
        return self._empty(
            Status.REFERENCE,
            message,
            details,
            versions or {},
            objective=said,
            bound=value,
            evidence=None if value is None else Evidence.SOLVER,
            scope=scope,
            scope_bound=scoped,
        )

    def failed(self, message: str, versions: Mapping[str, Any] | None = None) -> Result:
        """The result of a method that raised something."""
        return self._empty(Status.ERROR, message, {}, versions or {})

    def _empty(
        self, status: Status, message: str, details: Mapping[str, Any], versions: Mapping[str, Any], **figures: Any
    ) -> Result:
        """A result without a solution."""
        return Result(
            instance=self.instance.name,
            instance_digest=self.instance.digest,
            family=self.instance.family,
            method=self.method,
            status=status,
            runtime_s=self.runtime_s,
            compile_s=self.compile_s,
            trace=self._backed(figures.get("bound"), figures.get("objective"), 0.0),
            details=details,
            provenance=provenance(self.seed, self.limits.threads, **versions),
            message=message,
            sense=self.instance.sense,
            unit=self.instance.objective_unit,
            interrupted=self.interrupted,
            **figures,
        )

    def _backed(self, bound: float | None, objective: float | None, slack: float) -> tuple[TracePoint, ...]:
        """The trace, without claims that go beyond what was checked.

        Such bounds are those of a scope, of a part, or said too early. Such incumbents are better than the objective
        of the result; without one there are none. What is left says something.
        """
        sense = self.instance.sense

        best = None if objective is None else _eased(objective, slack, sense)
        tightest = None if bound is None else _eased(bound, -slack, sense)

        def backed(point: TracePoint) -> TracePoint:
            is_found = best is not None and point.incumbent is not None and not better(point.incumbent, best, sense)
            is_proven = tightest is not None and point.bound is not None and not better(tightest, point.bound, sense)
            return replace(
                point, incumbent=point.incumbent if is_found else None, bound=point.bound if is_proven else None
            )

        left = map(backed, self.trace)
        return tuple(point for point in left if (point.incumbent, point.bound) != (None, None))

    def _prover(self, tightest: Bound | None, combinatorial: Bound | None) -> str | None:
        """What proved the bound that counts; of equals, the problem's own bound did."""
        if tightest is None:
            return None
        known = None if combinatorial is None else combinatorial.value
        is_known = known is not None and abs(tightest.value - known) <= OBJECTIVE_TOL * abs(known)
        return str(Evidence.COMBINATORIAL) if is_known else self.leaf or self.method

    @property
    def _who(self) -> str:
        return f"{self.method} on '{self.instance.name}'"

    def _combinatorial(self) -> Bound | None:
        """The problem's own bound; where it is not to be had in the time that is left, or soon after, None.

        What it may take then is in processor seconds: on a busy machine it is there as well.
        """
        find = family(self.instance.family).bound
        if self.limits.time_s is None:
            return self._bound(find(self.instance), Evidence.COMBINATORIAL)
        left_s = max(self.limits.time_s - self.runtime_s, _SOON_S + _SOON * self.limits.time_s)
        found = built(left_s, lambda: (find(self.instance),), time.process_time)
        return None if found is None else self._bound(found[0], Evidence.COMBINATORIAL)

    def _bound(self, value: Any, evidence: Evidence) -> Bound | None:
        """A bound; None where there is none, or it is infinite and so says nothing."""
        if value is None or value == (-math.inf if self.instance.sense == "minimize" else math.inf):
            return None
        return Bound(self._finite(value, "bound"), evidence)

    def _finite(self, value: Any, what: str) -> float:
        return finite(value, f"{self._who}: its {what}")


def beside(bound: float, objective: float, sense: Sense, unit: str, who: str) -> float:
    """A bound that stands beside the objective of a checked solution.

    This is the one place where a bound gives way to an objective, and only as far as rounding goes: a dual bound may
    pass the optimum by the solver's tolerance, and the checked solution is the better witness. No method clips a bound
    to the best that it knows, as that would hide what is false.

    Parameters
    ----------
    bound, objective : float
    sense : {"minimize", "maximize"}
    unit : str
        Of the objective; one without may be a sum whose parts cancel.
    who : str
        Whose bound that is, for the error.

    Raises
    ------
    ContradictionError
        If the bound is on the wrong side of the objective.
    """
    if better(objective, _eased(bound, _slack(objective, unit), sense), sense):
        relation = "exceeds" if sense == "minimize" else "is below"
        raise ContradictionError(f"{who} {bound:.12g} {relation} the checked objective {objective:.12g}")
    return bound if better(bound, objective, sense) else objective


def _beside_claim(claim: Any, objective: float, sense: Sense, unit: str) -> str:
    """What is to be said of a bound that is only claimed: that the objective refutes it, or nothing."""
    with contextlib.suppress(TypeError, ValueError):
        try:
            beside(float(claim), objective, sense, unit, "the claimed bound")
        except ContradictionError as refuted:
            return f"{refuted}, and is false"
    return ""


def _slack(objective: float, unit: str) -> float:
    """Difference between an objective and a bound that is rounding."""
    return (0.0 if unit else ROUNDING) + OBJECTIVE_TOL * abs(objective)


def finite(value: Any, what: str) -> float:
    """The number as a float.

    Raises
    ------
    SolverError
        If it is none, or too large for one, infinite or NaN.
    """
    try:
        if isinstance(value, bool | np.bool_ | str | bytes):
            raise TypeError
        number = float(value)
    except OverflowError:
        number = math.inf
    except Exception:  # whatever the object does when it is asked for its value
        raise SolverError(f"{what} is no number, but a {type(value).__name__}") from None
    if not math.isfinite(number):
        raise SolverError(f"{what} is {number}, which is not finite")
    return number


def leaf_of(name: str, answers: object) -> str | None:
    """What answers under a name that says only who is asked: its class; None where the name says it."""
    return type(answers).__name__ if name == "exact" else None


def is_ours(method: Any) -> bool:
    """Whether a method is of this package as it stands there: not of a derived class, and with nothing put in place."""
    kind = type(method)
    home = sys.modules.get(kind.__module__) if kind.__module__.startswith("ddlopt.") else None
    found: Any = home
    for name in kind.__qualname__.split("."):
        found = getattr(found, name, None)
    options = {each.name for each in fields(kind)} if is_dataclass(kind) else set()
    put = set(getattr(method, "__dict__", ())) - options
    return found is kind and not any(callable(getattr(kind, name, None)) for name in put)


def _eased(bound: float, slack: float, sense: Sense) -> float:
    return bound - slack if sense == "minimize" else bound + slack


def _tightest(bounds: list[Bound], sense: Sense) -> Bound | None:
    """The tightest; of those that are as tight the one that was named first."""
    sign = 1.0 if sense == "minimize" else -1.0
    return max(bounds, key=lambda bound: sign * bound.value, default=None)
