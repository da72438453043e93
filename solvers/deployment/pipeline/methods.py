"""The methods for the problem ``pipeline``."""

from importlib import import_module

from ddlopt.models.deployment.pipeline.instance import PipelineInstance
from ddlopt.solvers.contracts import Method
from ddlopt.solvers.makers import entries

ROOM = "deployment/pipeline"


def best(instance: PipelineInstance, solver: str) -> Method:
    """The dynamic program over ideals, or over the cuts of one order where there are too many."""
    module = import_module("ddlopt.solvers.deployment.pipeline.ideal_program")
    every: Method = module.PipelineProgram()
    line: Method = module.PipelineProgram(line=True)
    return every if every.refuses(instance) is None else line


ENTRIES = entries(
    ROOM,
    ("pipeline-ideals", "exact", "dynamic programming over ideals, with exact options of every stage", "ideal_program:PipelineProgram"),
    ("stage-path", "exact", "stages as columns that make a path", "models:formulations.stage_path:StagePath"),
    ("piper", "heuristic", "Piper's stages, with its greedy options", "simple:Piper"),
    ("equal-split", "heuristic", "PipeDream-2BW's stages of as many layers each, with the same degrees", "simple:EqualSplit"),
)  # fmt: skip
