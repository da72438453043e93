"""What becomes of results behind the gate: joined, laid to a certificate, or withheld, and never more than proven."""

from fractions import Fraction

import pytest

from ddlopt.models.contracts import Evidence
from ddlopt.models.errors import ContradictionError
from ddlopt.solvers.certified import by_certificate, joined, withheld
from ddlopt.solvers.contracts import Result, Status, TracePoint


def said(method, objective=None, bound=None, **more):
    """A result of a method that found what is worth so much, and proved so much."""
    found = {"solution": f"of {method}", "found_by": method, "checked": True} if objective is not None else {}
    proved = {"evidence": Evidence.SOLVER, "proved_by": method} if bound is not None else {}
    status = Status.NO_SOLUTION if objective is None else Status.FEASIBLE
    figures = {"status": status, "objective": objective, "bound": bound, **found, **proved, **more}
    return Result("one", "0" * 64, "topology", method, **figures)


NEVER = said("slow", status=Status.INFEASIBLE, evidence=Evidence.SOLVER, message="never")


@pytest.mark.parametrize(("gap", "status"), [(0.2499, Status.FEASIBLE), (0.25, Status.OPTIMAL), (0.5, Status.OPTIMAL)])
def test_a_joined_result_is_optimal_within_the_gap_that_was_asked_for(gap, status):
    assert joined(said("quick", 5.0, 3.0), said("slow", 4.0), gap).status is status


def test_a_figure_of_another_network_is_not_optimal_whatever_its_bound():
    figure = said("ideal", 4.0, 4.0, solution=None, status=Status.REFERENCE)
    assert joined(said("quick"), figure, 0.0).status is Status.REFERENCE


def test_without_a_bound_there_is_no_evidence():
    result = joined(said("quick", 4.0), said("slow"), 0.0)
    assert (result.status, result.bound, result.evidence, result.proved_by) == (Status.FEASIBLE, None, None, None)


@pytest.mark.parametrize("turned", [False, True])
def test_that_there_is_no_solution_stands_with_its_own_evidence(turned):
    """A bound on objectives is none of that, and says nothing where there are none."""
    before = said("quick", bound=3.0, evidence=Evidence.COMBINATORIAL, trace=(TracePoint(0.1, None, 3.0),))
    pair = (NEVER, before) if turned else (before, NEVER)
    result = joined(*pair, 0.0, method="both", trace=before.trace)
    assert (result.method, result.status, result.evidence, result.message) == (
        "both", Status.INFEASIBLE, Evidence.SOLVER, "never",
    )  # fmt: skip
    assert (result.bound, result.proved_by, [point.bound for point in result.trace]) == (None, None, [None])
    with pytest.raises(ContradictionError, match="slow says that 'one' has no solution, but that of quick passes"):
        joined(*((NEVER, said("quick", 4.0)) if turned else (said("quick", 4.0), NEVER)), 0.0)


@pytest.mark.parametrize("sense", ["minimize", "maximize"])
def test_the_bound_of_a_certificate_is_never_rounded_beyond_what_it_proves(sense):
    sign = 1 if sense == "minimize" else -1
    loose = said("found", float(5 * sign), sense=sense)
    for proven in (Fraction(sign, 3), Fraction(2 * sign, 3), Fraction(3 * sign), Fraction(sign, 10)):
        result = by_certificate(loose, proven, 0.0)
        assert 0 < sign * (proven - Fraction(result.bound)) < Fraction(1, 10**12)
        assert (result.status, result.evidence) == (Status.FEASIBLE, Evidence.CERTIFICATE)


def test_a_certificate_proves_as_much_as_it_says():
    found = said("found", 4.0, 3.0, proved_by="proof")
    assert by_certificate(found, Fraction(299, 100), 1e-4) is found
    assert by_certificate(found, Fraction(3) - Fraction(1, 10**6), 1e-4).evidence is Evidence.CERTIFICATE
    assert by_certificate(found, Fraction(3), 0.2).status is Status.FEASIBLE
    assert by_certificate(found, Fraction(3), 0.26).status is Status.OPTIMAL
    assert by_certificate(found, Fraction(3), 0.2).proved_by == "proof"
    assert by_certificate(said("found", 4.0), Fraction(3), 0.2).proved_by == "found"
    worthless = by_certificate(said("found", 0.0), Fraction(-1), 0.2)  # no gap is relative to 0
    assert (worthless.status, worthless.gap) == (Status.FEASIBLE, None)
    assert by_certificate(said("found"), Fraction(3), 0.2) == said("found")


def test_a_solution_that_is_withheld_is_gone_and_the_bound_stays():
    trace = (TracePoint(0.1, 5.0, None), TracePoint(0.2, 4.0, 3.0))
    found = said("found", 4.0, 3.0, trace=trace)
    kept = withheld(found, "too large")
    assert (kept.status, kept.objective, kept.solution, kept.checked, kept.found_by) == (
        Status.NO_SOLUTION, None, None, False, None,
    )  # fmt: skip
    assert (kept.bound, kept.evidence, kept.proved_by, kept.message) == (3.0, Evidence.SOLVER, "found", "too large")
    assert kept.trace == (TracePoint(0.2, None, 3.0),)
