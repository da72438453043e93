"""What may become of a result that has passed the gate: it is told anew, withdrawn, or joined with another one.

Nothing here takes a figure from anybody but results of the gate and the checker of certificates. Outside of the gate
and this module no result is made or changed; a test holds that.
"""

import math
from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction
from typing import Any

from ddlopt.models.contracts import Evidence, Sense
from ddlopt.models.errors import ContradictionError
from ddlopt.models.tolerances import OBJECTIVE_TOL
from ddlopt.solvers.certify import beside
from ddlopt.solvers.contracts import Result, Status, better, relative_gap

_TOLD = frozenset({"method", "message", "runtime_s", "compile_s", "trace", "details", "provenance", "interrupted"})


def told_anew(result: Result, **figures: Any) -> Result:
    """The result under another name, with other times, details or words; what was found and proven stays as it is."""
    odd = sorted(set(figures) - _TOLD)
    if odd:
        raise TypeError(f"{odd[0]} of a result is the gate's to say")
    return replace(result, **figures)


def withdrawn(result: Result, status: Status, message: str | None = None, *, scope: bool = False) -> Result:
    """The result without its bound, or without that of its scope, and with a status that says less.

    Raises
    ------
    ValueError
        If the status says that something is proven.
    """
    if status in (Status.OPTIMAL, Status.INFEASIBLE):
        raise ValueError(f"what is withdrawn is not {status}")
    told = result.message if message is None else message
    if scope:
        return replace(result, status=status, message=told, scope_bound=None)
    trace = tuple(replace(point, bound=None) for point in result.trace)
    return replace(result, status=status, message=told, bound=None, evidence=None, proved_by=None, trace=trace)


def withheld(result: Result, message: str) -> Result:
    """The result without its solution, for one that nobody should take for an answer; what is proven stays."""
    return replace(
        result,
        status=Status.NO_SOLUTION,
        objective=None,
        solution=None,
        checked=False,
        found_by=None,
        message=message,
        trace=tuple(replace(point, incumbent=None) for point in result.trace if point.bound is not None),
    )


def joined(first: Result, second: Result, gap: float, **figures: Any) -> Result:
    """The better solution of two results of one instance, with the tighter of their bounds.

    Parameters
    ----------
    first, second : Result
        What is proven within the scope of the first goes only with its own solution, and not beside the second.
    gap : float
        Relative gap up to which a solution counts as optimal.
    **figures
        As :func:`told_anew` takes them.

    Raises
    ------
    ContradictionError
        If the bound of one is on the wrong side of the solution of the other, or one says that there is none.
    """
    sense = first.sense
    if (first.instance_digest, sense) != (second.instance_digest, second.sense):
        raise ValueError(f"'{first.instance}' and '{second.instance}' are two instances")
    for one, other in ((first, second), (second, first)):
        if one.status is Status.INFEASIBLE:
            return _infeasible(one, other, **figures)
    chosen = second
    if first.objective is not None and (
        second.objective is None or not better(second.objective, first.objective, sense)
    ):
        chosen = replace(first, scope=None, scope_bound=None)
    by = _tighter(first, second, sense)
    bound = by.bound
    if bound is not None and chosen.objective is not None:
        who = f"{by.method} on '{by.instance}', beside {chosen.method}: bound"
        bound = beside(bound, chosen.objective, sense, chosen.unit, who)
    left = relative_gap(chosen.objective, bound, sense)
    proven = chosen.solution is not None and left is not None and left <= max(gap, OBJECTIVE_TOL)
    return replace(
        told_anew(chosen, **figures),
        bound=bound,
        proved_by=by.proved_by,
        evidence=None if bound is None else by.evidence,
        status=Status.OPTIMAL if proven else chosen.status,
    )


def _infeasible(proof: Result, other: Result, **figures: Any) -> Result:
    """That there is no solution, beside a result that has none either; a bound on objectives then says nothing."""
    if other.solution is not None:
        raise ContradictionError(
            f"{proof.method} says that '{proof.instance}' has no solution, but that of {other.method} passes the check"
        )
    told = told_anew(proof, **figures)
    return replace(told, trace=tuple(replace(point, bound=None) for point in told.trace))


def by_certificate(result: Result, bound: Fraction, gap: float) -> Result:
    """The result, its bound laid to a certificate that the checker has accepted, where that is as tight.

    Parameters
    ----------
    bound : Fraction
        What the checker says that the certificate proves: from below of what is minimised, else from above.
    gap : float
        Relative gap up to which a solution counts as optimal.

    Raises
    ------
    ContradictionError
        If the certificate proves more than the checked solution has: one of the two checks is wrong.
    """
    sign = 1 if result.sense == "minimize" else -1
    value = math.nextafter(float(bound), -sign * math.inf)  # never more than what is proven
    if result.objective is None:
        return result
    who = f"{result.method} on '{result.instance}': bound of the certificate"
    if beside(value, result.objective, result.sense, result.unit, who) != value:
        return result
    if result.bound is not None and sign * value < sign * result.bound - OBJECTIVE_TOL * abs(result.bound):
        return result
    left = relative_gap(result.objective, value, result.sense)
    proven = left is not None and left <= max(gap, OBJECTIVE_TOL)
    status = Status.OPTIMAL if proven else Status.FEASIBLE
    by = result.proved_by or result.method
    return replace(result, bound=value, evidence=Evidence.CERTIFICATE, proved_by=by, status=status)


def recorded(row: Mapping[str, Any], **figures: Any) -> Result:
    """A result with the figures of a row of a store that was found sound, for pictures."""
    known = {name: row[name] for name in ("instance", "family", "method", "objective", "sense")} | figures
    return Result(instance_digest=str(row["instance_digest"]), status=Status(row["status"]), **known)


def _tighter(first: Result, second: Result, sense: Sense) -> Result:
    """The result with the tighter bound; of equals the first."""
    if first.bound is None or second.bound is None:
        return second if first.bound is None else first
    return second if better(first.bound, second.bound, sense) else first
