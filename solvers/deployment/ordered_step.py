"""The exact step of plans for pipelines: the best order of their micro-batches, and what it costs."""

from collections.abc import Sequence
from typing import NamedTuple

from ddlopt.models.deployment.microbatches.solution import MicroBatchOrder
from ddlopt.models.deployment.orders_of_plans import busiest_s, order_instance
from ddlopt.models.deployment.pipeline.instance import PipelineInstance, PipelinePlan
from ddlopt.models.deployment.step.instance import StepInstance, StepPlan
from ddlopt.solvers.contracts import Limits
from ddlopt.solvers.deployment.microbatches.methods import best
from ddlopt.solvers.heuristic import Clock


class OrderedStep(NamedTuple):
    """A plan's step.

    Parameters
    ----------
    busiest_s : float
        What the busiest device works, with what is behind the barrier: no order takes less.
    bound_s : float
        What no order takes less than, proven by the exact method of orders.
    step_s : float
        Of the order that was found.
    order : MicroBatchOrder
    """

    busiest_s: float
    bound_s: float
    step_s: float
    order: MicroBatchOrder

    @property
    def price(self) -> float:
        """Price of the order: how much longer the step is than the busiest device's work."""
        return self.step_s / self.busiest_s - 1 if self.busiest_s else 0.0


def ordered_step(
    instance: StepInstance | PipelineInstance,
    plan: StepPlan | PipelinePlan,
    limits: Limits,
    seed: int = 0,
    weights: float = 0.0,
) -> OrderedStep | None:
    """The best order of a feasible plan's micro-batches that is found within the limits; None if none is.

    Parameters
    ----------
    instance : StepInstance or PipelineInstance
    plan : StepPlan or PipelinePlan
    limits : Limits
    seed : int
    weights : float
        Share of the backward pass that is a pass of its own; see :func:`order_instance`.
    """
    orders = order_instance(instance, plan, weights)
    found = best(orders, "highs").solve(orders, limits, seed)
    if found.objective is None or found.bound is None or not found.checked:
        return None
    return OrderedStep(float(busiest_s(orders)), found.bound, found.objective, found.solution)  # type: ignore[arg-type]


def order_details(
    instance: StepInstance | PipelineInstance,
    plans: Sequence[StepPlan | PipelinePlan],
    clock: Clock,
    seed: int,
    weights: float,
) -> dict[str, float]:
    """What a method says of the orders of its best plans, the best one first, in the time that it has left.

    The first plan's step with its bound and its price; and, of all, the least step and the number of its plan.
    """
    steps: list[tuple[float, int]] = []
    details: dict[str, float] = {}
    for place, plan in enumerate(plans):
        if place and clock.expired:
            break
        limits = Limits(clock.part(1 / (len(plans) - place)), gap=clock.gap)
        found = ordered_step(instance, plan, limits, seed, weights)
        if found is None:
            continue
        steps.append((found.step_s, place + 1))
        if place == 0:
            details = {
                "ordered_step_s": found.step_s,
                "ordered_step_bound_s": found.bound_s,
                "price_of_order": found.price,
            }
    if len(plans) > 1 and steps:
        least, number = min(steps)
        details |= {"least_ordered_step_s": least, "least_ordered_plan": float(number)}
    return details
