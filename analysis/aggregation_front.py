"""What fewer connections or fewer aggregators cost: the front of two goals, limit by limit."""

from dataclasses import dataclass
from typing import Any, Literal

from ddlopt.models.aggregation import AggregationTrees, GraphInstance
from ddlopt.models.errors import InfeasibleError, OptionError
from ddlopt.solvers.aggregation.graph.methods import best
from ddlopt.solvers.contracts import Limits, Status

# Objectives whose methods end at the default relative gap may differ by it.
_SAME = 1e-4

Count = Literal["connections", "aggregators"]


@dataclass(frozen=True)
class FrontPoint:
    """The best answer with at most ``limit`` connections, or aggregators.

    Parameters
    ----------
    limit : int
    used : int
        Of what is limited, by the answer.
    objective, bound : float
        Of the instance's goal.
    proven : bool
        Whether the two agree within the gap asked for.
    solution : AggregationTrees
    """

    limit: int
    used: int
    objective: float
    bound: float | None
    proven: bool
    solution: AggregationTrees


def front(
    instance: GraphInstance, over: Count, limits: Limits | None = None, solver: str = "highs"
) -> list[FrontPoint]:
    """Best answers as the limit of ``over`` falls to one less than the last answer used, until there is none.

    Of points with one objective the one with the fewest is kept.

    Parameters
    ----------
    instance : GraphInstance
        A limit that it has already is the first one.
    over : {"connections", "aggregators"}
    limits : Limits, optional
        Of each solve.

    References
    ----------
    Y. Haimes, L. Lasdon, D. Wismer, "On a bicriterion formulation of the problems of integrated system identification
    and system optimization", IEEE Transactions on Systems, Man, and Cybernetics 1, 1971, for one goal as a constraint.

    Raises
    ------
    OptionError
        If ``over`` is none of the two.
    """
    if over not in ("connections", "aggregators"):
        raise OptionError(f"the front is over connections or aggregators, not over '{over}'")
    given = getattr(instance, over)
    limit = _most(instance, over) if given is None else given
    found: list[FrontPoint] = []
    while limit >= (1 if over == "connections" else 0):
        point = _point(instance, over, limit, limits or Limits(), solver)
        if point is None:
            break
        found.append(point)
        limit = point.used - 1
    # One that needs no more than a later, smaller limit allows is as good with that limit.
    return [point for k, point in enumerate(found) if not any(same(point, other) for other in found[k + 1 :])]


def same(one: FrontPoint, other: FrontPoint) -> bool:
    """Whether two points have the same objective, but for rounding and the gap asked for."""
    return abs(one.objective - other.objective) <= _SAME * abs(one.objective)


def _most(instance: GraphInstance, over: Count) -> int:
    workers = [len(job.workers) for job in instance.jobs]
    return max(workers) if over == "connections" else sum(number - 1 for number in workers)


def _point(instance: GraphInstance, over: Count, limit: int, limits: Limits, solver: str) -> FrontPoint | None:
    data: dict[str, Any] = instance.model_dump() | {over: limit}
    limited = GraphInstance.from_data(data)
    try:
        result = best(limited, solver).solve(limited, limits)
    except InfeasibleError:
        return None
    if result.objective is None or not isinstance(result.solution, AggregationTrees):
        return None
    proven = result.status is Status.OPTIMAL
    used = int(result.details[over])
    return FrontPoint(limit, used, result.objective, result.bound, proven, result.solution)
