"""The problem ``scheduling``: what belongs to its room, as data."""

from ddlopt.models.problem import Problem, later
from ddlopt.models.scheduling.evaluate import evaluate
from ddlopt.models.scheduling.instance import SchedulingInstance
from ddlopt.models.scheduling.solution import Schedule

_PRICES = "ddlopt.models.scheduling.prices"


def kernels_of_bound(instance: SchedulingInstance) -> tuple[str, ...]:
    """Prices, which bound objectives that are maximised."""
    if instance.objective in ("makespan", "completion"):
        return ()
    plans = (f"{_PRICES}.plan_kernels",) if instance.objective == "utility" else ()
    offers = (f"{_PRICES}.offer_kernels",) if instance.typed else ()
    keeps = instance.objective == "utility" and (instance.changes_cost or instance.runs_are_long)
    kept = (f"{_PRICES}.kept_kernels",) if keeps else ()
    return (f"{_PRICES}.lagrangian_kernels", *plans, *offers, *kept)


PROBLEM = Problem(
    path="scheduling",
    title="workers, servers and rings of jobs over time",
    counts="jobs",
    limited_by="resources of servers, bandwidth between them, slots of time",
    columns={"jobs": "jobs", "servers": "server_count", "slots": "slots"},
    instance=SchedulingInstance,
    solution=Schedule,
    evaluate=evaluate,
    bound=later("ddlopt.models.scheduling.bounds:bound"),
    exact_bound=later("ddlopt.models.scheduling.makespan.exact_times:exact_time_bound"),
    kernels=kernels_of_bound,
)
