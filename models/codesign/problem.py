"""The problem ``codesign``: what belongs to its room, as data."""

from functools import partial

from ddlopt.models.codesign.evaluate import evaluate
from ddlopt.models.codesign.instance import CodesignInstance
from ddlopt.models.codesign.solution import CodesignPlan
from ddlopt.models.problem import Problem, later

PROBLEM = Problem(
    path="codesign",
    title="how layers are split, with links, rings and routes",
    counts="servers",
    limited_by="memory of servers, their ports, bandwidth of links",
    columns={"n": "servers", "d": "degree", "layers": "layers"},
    instance=CodesignInstance,
    solution=CodesignPlan,
    evaluate=evaluate,
    bound=later("ddlopt.models.codesign.bounds:lower_bound"),
    relaxations={
        "strategy-bound": later("ddlopt.models.codesign.formulations.strategy_bound:StrategyBound"),
        "joint-milp-all-rings": partial(
            later("ddlopt.models.codesign.formulations.joint_milp:JointStrategyTopology"), rings="all"
        ),
    },
)
