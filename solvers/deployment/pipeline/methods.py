"""The methods for the problem ``pipeline``."""

from importlib import import_module

from ddlopt.models.deployment.pipeline.instance import PipelineInstance
from ddlopt.solvers import chain
from ddlopt.solvers.contracts import Method
from ddlopt.solvers.makers import entries

ROOM = "deployment/pipeline"


def best(instance: PipelineInstance, solver: str) -> Method:
    """What links of the chain say, and the dynamic program over ideals behind them."""
    return chain.exact(ROOM, instance, solver, program)


def program(instance: PipelineInstance, solver: str) -> Method:
    """The dynamic program over all ideals, or over those near a good plan where there are too many."""
    every: Method = import_module("ddlopt.solvers.deployment.pipeline.ideal_program").PipelineProgram()
    near: Method = import_module("ddlopt.solvers.deployment.pipeline.near_ideals").NearIdeals()
    return every if every.refuses(instance) is None else near


ENTRIES = entries(
    ROOM,
    ("pipeline-ideals", "exact", "dynamic programming over ideals, with exact options of every stage", "ideal_program:PipelineProgram"),
    ("stage-path", "exact", "stages as columns that make a path", "models:formulations.stage_path:StagePath"),
    ("near-ideals", "heuristic", "our search: dynamic programs over ideals near those of a plan", "near_ideals:NearIdeals"),
    ("piper", "heuristic", "Piper's stages, with its greedy options", "simple:Piper"),
    ("equal-split", "heuristic", "PipeDream-2BW's stages of as many layers each, with the same degrees", "simple:EqualSplit"),
)  # fmt: skip
