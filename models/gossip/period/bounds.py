"""A bound for the problem ``period`` that needs no solver."""

from collections.abc import Iterator
from math import inf, isfinite

from ddlopt.models.errors import InfeasibleError
from ddlopt.models.gossip.period.instance import PeriodInstance
from ddlopt.models.gossip.period.time_to_target import TimeToTarget

# Parts of the range of periods: the bound is within a sixty-fourth power of the range.
_PARTS = 64
# A tenth a case: thereby 1e-3 is reached in 73 cases.
_STEP = 1.1


def period_bound(instance: PeriodInstance) -> float:
    r"""The least of the bounds on 64 intervals of periods, and of computing alone beyond them.

    Where rounds are designed, also over intervals of C: the eigenvalues of :math:`L_j`, beside the 0 of the all-one
    vector, add up to :math:`2 |M_j|`, so :math:`g = 1 - \rho` is at most :math:`\max_j |M_j| / (n-1)`, and at most C
    times :math:`\max_j |M_j| / ((n-1) t_j)`. No plan is faster than one with the least C of an interval and the most g.

    Raises
    ------
    InfeasibleError
        If no period reaches the target with the step size that is given. Progress in a step falls with the period and
        grows with mixing, so that what is at most 0 in all cases at period 1 is so at every period.
    """
    times = TimeToTarget.of(instance)
    bound = min(_bound(times, *case) for case in _cases(instance))
    if not isfinite(bound):
        raise InfeasibleError(
            f"'{instance.name}': with step_size {instance.step_size:g} the bound on the gradient stays above the "
            f"target {instance.target:g} at every period; take a smaller step"
        )
    return bound


def _cases(instance: PeriodInstance) -> Iterator[tuple[float, float]]:
    """C and ρ that no plan of a part is better than."""
    rounds = instance.rounds
    if rounds is None:
        assert instance.mixing is not None
        assert instance.communication_s is not None
        yield instance.communication_s, instance.mixing
        return
    pairs = list(map(len, rounds.matchings))
    most = max(pairs) / (instance.workers - 1)
    rate = max(count / time_s for count, time_s in zip(pairs, rounds.times_s, strict=True)) / (instance.workers - 1)
    high = most / rate  # beyond it only C grows
    yield high, max(0.0, 1.0 - most)
    while high > 1e-3 * most / rate:
        low = high / _STEP
        yield low, max(0.0, 1.0 - rate * high)
        high = low
    yield 0.0, 1.0 - rate * high


def _bound(times: TimeToTarget, communication_s: float, mixing: float) -> float:
    reached = times.seconds(1.0, communication_s, mixing)
    if reached == inf:
        return times.alone(mixing)
    high, found = times.last(reached, mixing), reached
    for part in range(_PARTS):
        low, up = high ** (part / _PARTS), high ** ((part + 1) / _PARTS)
        found = min(found, times.bound(low, up, communication_s, mixing)[0])
    return found
