"""The problem ``compression/levels``: what belongs to its room, as data."""

from ddlopt.models.compression.levels.evaluate import evaluate_levels
from ddlopt.models.compression.levels.instance import LevelInstance, LevelPlan
from ddlopt.models.problem import Problem, later

PROBLEM = Problem(
    path="compression/levels",
    title="how far each gradient is compressed",
    counts="gradients",
    limited_by="a budget of error or time",
    instance=LevelInstance,
    solution=LevelPlan,
    evaluate=evaluate_levels,
    bound=later("ddlopt.models.compression.levels.bounds:level_bound"),
)
