"""The methods for the problem ``step``."""

from importlib import import_module

from ddlopt.models.deployment.step.instance import StepInstance
from ddlopt.solvers.contracts import Method
from ddlopt.solvers.makers import entries

ROOM = "deployment/step"


def best(instance: StepInstance, solver: str) -> Method:
    """All plans, by their bounds."""
    every: Method = import_module("ddlopt.solvers.deployment.step.enumeration").StepEnumeration()
    return every


ENTRIES = entries(
    ROOM,
    ("step-enumeration", "exact", "all uniform plans, in the order of their bounds", "enumeration:StepEnumeration"),
    ("plan-choice", "exact", "a choice among all plans that fit, as an integer program", "models:formulations.plan_choice:PlanChoice"),
    ("megatron-rule", "heuristic", "tensor parallel in a server, then stages as memory asks, then copies", "rules:MegatronRule"),
    ("fully-sharded", "heuristic", "data parallelism alone, all state sharded", "rules:FullySharded"),
    ("replicated-data", "heuristic", "data parallelism alone, nothing sharded", "rules:ReplicatedData"),
    ("alpa-stages", "heuristic", "stages without interleaving, copies' messages not counted", "rules:AlpaStages"),
    ("galvatron-grid", "heuristic", "powers of two, without interleaving", "rules:GalvatronGrid"),
    ("calculon-grid", "heuristic", "all devices, everything made again or nothing, an optimizer sharded or not", "rules:CalculonGrid"),
)  # fmt: skip
