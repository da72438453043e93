"""The format ``micro-batches``: the order of a plan's micro-batches, as an instance that ``solve`` takes."""

from ddlopt.models.contracts import Evaluation
from ddlopt.models.deployment.orders_of_plans import order_instance
from ddlopt.models.deployment.pipeline.instance import PipelineInstance, PipelinePlan
from ddlopt.models.deployment.step.instance import StepInstance, StepPlan


def micro_batches(
    instance: StepInstance | PipelineInstance,
    solution: StepPlan | PipelinePlan,
    evaluation: Evaluation,
    weights: float = 0.0,
    freed: float = 0.0,
    name: str = "",
) -> str:
    """See :func:`~ddlopt.models.deployment.orders_of_plans.order_instance`."""
    return order_instance(instance, solution, weights, freed, name).to_json() + "\n"
