"""The problem ``aggregation/registers``: what belongs to its room, as data."""

from ddlopt.models.aggregation.registers.evaluate import evaluate_registers
from ddlopt.models.aggregation.registers.instance import Placement, RegisterInstance
from ddlopt.models.problem import Problem, later

PROBLEM = Problem(
    path="aggregation/registers",
    title="which register array each parameter is in",
    counts="parameters",
    limited_by="capacity of register arrays",
    instance=RegisterInstance,
    solution=Placement,
    evaluate=evaluate_registers,
    bound=later("ddlopt.models.aggregation.registers.bounds:registers_bound"),
)
