"""The problem ``deployment/microbatches``: what belongs to its room, as data."""

from ddlopt.models.deployment.microbatches.evaluate import evaluate_order
from ddlopt.models.deployment.microbatches.instance import MicroBatchInstance
from ddlopt.models.deployment.microbatches.solution import MicroBatchOrder
from ddlopt.models.problem import Problem, later

PROBLEM = Problem(
    path="deployment/microbatches",
    title="the order of micro-batches' passes on every device of a pipeline",
    counts="passes",
    limited_by="work of the busiest device, ramps of the pipeline, memory of devices",
    instance=MicroBatchInstance,
    solution=MicroBatchOrder,
    evaluate=evaluate_order,
    bound=later("ddlopt.models.deployment.microbatches.bounds:order_bound"),
)
