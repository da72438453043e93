"""The independent check of a period: the time to the target in rational numbers."""

from collections.abc import Iterator
from fractions import Fraction

import numpy as np

from ddlopt.models.contracts import Evaluation, Number, Violation
from ddlopt.models.gossip.period.instance import PeriodInstance, PeriodPlan, Rounds
from ddlopt.models.gossip.period.stragglers import MOST_STEPS, slowest_exact
from ddlopt.models.gossip.spectral.verified import largest_below
from ddlopt.models.tolerances import FEASIBILITY_TOL


def evaluate_period(instance: PeriodInstance, solution: PeriodPlan, exact: bool = False) -> Evaluation:
    """Seconds to the target.

    With ``exact`` a rational number; where rounds are designed, one that is proven to be no better than the plan is,
    as the eigenvalue behind it is none. Details: ``steps``, ``mixing`` (ρ), ``communication_s`` (C); with stragglers
    ``computing_s``, what a step takes on average until all are done.
    """
    violations = list(_violations(instance, solution, 0 if exact else FEASIBILITY_TOL))
    period, step = Fraction(solution.period), Fraction(solution.step_size)
    hopeless = {"number of probabilities", "no seconds are known for the period"}
    if violations and (period <= 0 or step <= 0 or hopeless & {each.kind for each in violations}):
        return Evaluation(None, tuple(violations))
    if instance.rounds is None:
        assert instance.mixing is not None
        assert instance.communication_s is not None
        mixing, communication = Fraction(instance.mixing), Fraction(instance.communication_s)
    else:
        # One that rounding left below 0 makes no round shorter.
        chances = tuple(max(chance, 0.0) for chance in solution.activation)
        times = zip(map(Fraction, chances), map(Fraction, instance.rounds.times_s), strict=True)
        communication = sum((chance * time for chance, time in times), Fraction(0))
        mixing = 1 - _second_eigenvalue(instance.rounds, chances, exact) / 2
    if mixing >= 1:
        return Evaluation(None, (*violations, Violation("workers never agree: mixing", "rounds", float(mixing), 1)))
    spread = (1 + mixing) / (1 - mixing)
    smooth, noise = Fraction(instance.smoothness), Fraction(instance.variance)
    noise_term = step * smooth * noise / instance.workers
    drift_term = (step * smooth) ** 2 * noise * (spread * period - instance.credit)
    left = Fraction(instance.target) - noise_term - drift_term
    if left <= 0:
        floor = Violation("target below what the step size allows", "target", instance.target, noise_term + drift_term)
        return Evaluation(None, (*violations, floor))
    steps = 2 * Fraction(instance.initial_gap) / (step * left)
    computing = Fraction(instance.compute_s) * _seconds_a_step(instance, period)
    objective: Number = steps * (computing + communication / period)
    details: dict[str, Number] = {"steps": steps, "mixing": mixing, "communication_s": communication}
    if instance.stragglers is not None:
        details["computing_s"] = computing
    if not exact:
        objective, details = float(objective), {name: float(value) for name, value in details.items()}
    return Evaluation(objective, tuple(violations), details)


def _violations(instance: PeriodInstance, solution: PeriodPlan, tolerance: float) -> Iterator[Violation]:
    period = solution.period
    wanted = 0 if instance.rounds is None else len(instance.rounds.matchings)
    if len(solution.activation) != wanted:
        yield Violation("number of probabilities", "activation", len(solution.activation), wanted)
    if period < 1:
        yield Violation("period below one step", "period", period, 1)
    if instance.whole and period != round(period):
        yield Violation("period is no whole number", "period", period, round(period))
    slow = instance.stragglers
    if slow is not None and slow.random and (not 0 < period <= MOST_STEPS or period != round(period)):
        yield Violation("no seconds are known for the period", "period", period, MOST_STEPS)
    if solution.step_size <= 0:
        yield Violation("step size not above 0", "step_size", solution.step_size, 0)
    if instance.step_size is not None and solution.step_size != instance.step_size:
        yield Violation("step size is not the one given", "step_size", solution.step_size, instance.step_size)
    for place, chance in enumerate(solution.activation):
        if chance < -tolerance:
            yield Violation("probability below 0", f"activation[{place}]", chance, 0)
    total = sum(map(Fraction, solution.activation), Fraction(0))
    if total > 1 + Fraction(tolerance):
        yield Violation("more than one matching in a round", "activation", total, 1)


def _seconds_a_step(instance: PeriodInstance, period: Fraction) -> Fraction:
    """Over those of compute_s, until the last of the workers is done; rounded upwards far below what floats tell."""
    slow = instance.stragglers
    if slow is None:
        return Fraction(1)
    return slowest_exact(slow, int(period), up=True) / int(period) if slow.random else slow.limit


def _second_eigenvalue(rounds: Rounds, chances: tuple[float, ...], exact: bool) -> Fraction:
    n = rounds.network.nodes
    matrix = np.zeros((n, n))
    for chance, matching in zip(chances, rounds.matchings, strict=True):
        for edge in matching:
            i, j = rounds.network.edges[edge]
            matrix[[i, j], [i, j]] += chance
            matrix[[i, j], [j, i]] -= chance
    if exact:
        # Entries are sums of at most as many numbers as there are matchings; all of it is rounding that counts.
        error = 2.0**-52 * n * len(chances) * float(np.abs(matrix).sum(axis=1).max())
        return max(Fraction(0), -largest_below(-matrix, float(np.trace(matrix)), error))
    return Fraction(max(0.0, float(np.linalg.eigvalsh(matrix)[1])))
