"""A bound for the problem ``period`` that needs no solver."""

from math import inf

from ddlopt.models.errors import InfeasibleError
from ddlopt.models.gossip.period import PeriodInstance
from ddlopt.models.gossip.time_to_target import TimeToTarget

_PARTS = 64


def period_bound(instance: PeriodInstance) -> float:
    r"""The least of the bounds on 64 intervals of periods, and of computing alone beyond them.

    Where rounds are designed, C is 0 and the matchings mix as well as their number of edges allows: the eigenvalues of
    :math:`L_j`, beside the 0 of the all-one vector, add up to twice the number, so :math:`g \le \max_j |M_j| / (n-1)`.

    Raises
    ------
    InfeasibleError
        If no period reaches the target with the step size that is given.
    """
    times = TimeToTarget.of(instance)
    if instance.rounds is None:
        assert instance.mixing is not None
        assert instance.communication_s is not None
        mixing, communication_s = instance.mixing, instance.communication_s
    else:
        most = max(map(len, instance.rounds.matchings))
        mixing, communication_s = max(0.0, 1.0 - most / (instance.workers - 1)), 0.0
    reached = times.seconds(1.0, communication_s, mixing)
    if reached == inf:
        raise InfeasibleError(
            f"'{instance.name}': with step_size {instance.step_size:g} the bound on the gradient stays above the "
            f"target {instance.target:g} at every period; take a smaller step"
        )
    high = 2.0
    while times.seconds(high, 0.0, mixing) < reached:
        high *= 2.0
    found = reached
    for part in range(_PARTS):
        low, up = high ** (part / _PARTS), high ** ((part + 1) / _PARTS)
        found = min(found, times.bound(low, up, communication_s, mixing)[0])
    return found
