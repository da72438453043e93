"""The special method for pipelines of wide graphs, and when ``exact`` asks it."""

from ddlopt.frontier.deployment.pipeline.pipeline_prices import PipelinePrices
from ddlopt.models.deployment.pipeline.instance import PipelineInstance
from ddlopt.solvers.contracts import Method
from ddlopt.solvers.deployment.pipeline.ideal_program import PipelineProgram


def link(instance: PipelineInstance, _: str) -> Method | None:
    """Prices where there are too many ideals for the program over all of them."""
    prices = PipelinePrices()
    wide = PipelineProgram().refuses(instance) is not None
    return prices if wide and prices.refuses(instance) is None else None
