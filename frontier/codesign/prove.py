"""Writes proofs by choices of strategies: branch and bound over designs for those that sums do not exclude."""

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from ddlopt.certificates.codesign.certificate import (
    ChoiceCertificate,
    fields_of,
    least_bytes,
    needed_bytes,
    not_gone_through,
)
from ddlopt.certificates.codesign.choices import Choices
from ddlopt.certificates.codesign.exact import ExactFigures, Sent, part_of
from ddlopt.certificates.topology import DesignCertificate
from ddlopt.frontier.topology.branch_and_bound.branch_and_bound import BranchAndBound
from ddlopt.frontier.topology.branch_and_bound.search import Search
from ddlopt.models.codesign.instance import CodesignInstance
from ddlopt.models.codesign.solution import CodesignPlan
from ddlopt.models.errors import NotApplicableError, RefutedError, SolutionError
from ddlopt.models.topology.instance import TopologyInstance
from ddlopt.solvers.heuristic import Asked


@dataclass(frozen=True)
class Effort:
    """How much a proof may take before it is given up."""

    most_cases: int = 2_000_000
    """Choices of the first layers take some seconds: a tree over a formulation wants time as well."""
    most_left: int = 2000
    """Choices left to exclude: each takes the checker some milliseconds."""
    most_jobs: int = 100
    """Jobs that are excluded one by one, each in seconds."""
    most_evaluations: int = 200_000
    """Of weights in one branch and bound: some ten seconds."""
    above: float = 2e-4
    """Part by which the load to exclude is larger than the bytes needed, as the search leaves half of it."""


_EFFORT = Effort()


def prove(
    instance: CodesignInstance, solution: CodesignPlan, target: Fraction, expired: Callable[[], bool]
) -> ChoiceCertificate | None:
    """The certificate that proves ``target``; None where too much is left, or the time is up."""
    if not_gone_through(instance) is not None or target <= 0:
        return None
    figures = ExactFigures(instance)
    left: list[tuple[Fraction, Sent, tuple[int, ...]]] = []
    choices = Choices(figures, target)

    def given_up() -> bool:
        return expired() or choices.cases > _EFFORT.most_cases or len(left) > _EFFORT.most_left

    for chosen in choices.left(given_up):
        needed, sent = needed_bytes(figures, chosen, target), figures.sent(chosen)
        if needed > 0 and least_bytes(figures.job(sent)) < needed:
            left.append((needed, sent, chosen))
    if given_up():
        return None
    jobs: list[dict[str, Any]] = []
    # What sends little is a part of more others.
    left.sort(key=lambda each: sum(figures.loads(each[1])))
    while left:
        needed, sent, chosen = left[0]
        job = figures.job(sent)
        design = None if job is None or len(jobs) == _EFFORT.most_jobs else _excluded(job, needed, expired)
        if design is None:
            return None
        jobs.append({"choices": list(chosen), "design": fields_of(design)})
        left = [each for each in left if part_of(each[1], sent) * design.bound < each[0]]
    certificate = ChoiceCertificate(instance.name, instance.digest, target, jobs)
    try:
        certificate.check(instance, expired)
    except (RefutedError, SolutionError):
        return None
    return None if expired() else certificate


def _excluded(job: TopologyInstance, needed: Fraction, expired: Callable[[], bool]) -> DesignCertificate | None:
    """A proof that every design carries at least ``needed`` bytes on the busiest link."""
    method = BranchAndBound()
    if method.refuses(job) is not None:
        return None
    clock = Asked(lambda: expired() or search.figures["evaluations"] > _EFFORT.most_evaluations)
    search = Search(job, clock, method.rounds, recording=True)
    search.best_bytes = float(needed) * (1 + _EFFORT.above)
    search.run(None, 1)
    if clock.expired:
        return None
    try:
        design = search.certificate()
    except NotApplicableError:
        return None
    return design if design.bound >= needed else None
