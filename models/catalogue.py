"""The families there are: a new one is a new folder and one entry here."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from typing import Any

from ddlopt.models.contracts import Evaluation, Instance, Solution
from ddlopt.models.errors import UnknownNameError


@dataclass(frozen=True)
class Family:
    """What the rest of ddlopt needs to know of a family.

    ``evaluate(instance, solution, exact=False)`` is the independent check; ``bound(instance)`` a combinatorial bound on
    the objective of every solution, found without a solver: from below where the instance's objective is minimised,
    from above where it is maximised, None where there is none.
    """

    name: str
    title: str
    instance: type[Instance]
    solution: type[Solution]
    evaluate: Callable[..., Evaluation]
    bound: Callable[[Any], float | None]


def _later(module: str, name: str = "bound") -> Callable[[Any], float | None]:
    """A family's bound, imported when it is asked for: what it is calculated with takes its time to import."""

    def bound(instance: Any) -> float | None:
        found: float | None = getattr(import_module(module), name)(instance)
        return found

    return bound


def _topology() -> Family:
    from ddlopt.models.topology import TopologyDesign, TopologyInstance, evaluate

    title = "optical links, rings and routes for one training job"
    bound = _later("ddlopt.models.topology.bounds", "lower_bound")
    return Family("topology", title, TopologyInstance, TopologyDesign, evaluate, bound)


def _scheduling() -> Family:
    from ddlopt.models.scheduling import Schedule, SchedulingInstance, evaluate

    title = "ring all-reduce jobs on a cluster over time"
    bound = _later("ddlopt.models.scheduling.bounds")
    return Family("scheduling", title, SchedulingInstance, Schedule, evaluate, bound)


def _compression() -> Family:
    from ddlopt.models.compression import CompressionAnswer, CompressionProblem, evaluate

    title = "which gradients to compress, how, and which to send as sufficient factors"
    bound = _later("ddlopt.models.compression.bounds")
    return Family("compression", title, CompressionProblem, CompressionAnswer, evaluate, bound)


def _codesign() -> Family:
    from ddlopt.models.codesign import CodesignInstance, CodesignPlan, evaluate

    title = "parallelization strategy, optical links, rings and routes for one training job together"
    bound = _later("ddlopt.models.codesign.bounds", "lower_bound")
    return Family("codesign", title, CodesignInstance, CodesignPlan, evaluate, bound)


def _deployment() -> Family:
    from ddlopt.models.deployment import DeploymentAnswer, DeploymentProblem, evaluate

    title = "where operators run: deployment on unlike devices, partition into stages, strategies within operators"
    bound = _later("ddlopt.models.deployment.bounds")
    return Family("deployment", title, DeploymentProblem, DeploymentAnswer, evaluate, bound)


def _aggregation() -> Family:
    from ddlopt.models.aggregation import AggregationAnswer, AggregationProblem, evaluate

    title = "in-network aggregation: what switches add up, where, with how much memory, and in which tables"
    bound = _later("ddlopt.models.aggregation.bounds")
    return Family("aggregation", title, AggregationProblem, AggregationAnswer, evaluate, bound)


def _gossip() -> Family:
    from ddlopt.models.gossip import GossipAnswer, GossipProblem, evaluate

    title = "gossip: who averages with whom, with which weights, and how often"
    bound = _later("ddlopt.models.gossip.bounds")
    return Family("gossip", title, GossipProblem, GossipAnswer, evaluate, bound)


_FAMILIES: dict[str, Callable[[], Family]] = {
    "topology": _topology,
    "scheduling": _scheduling,
    "compression": _compression,
    "codesign": _codesign,
    "deployment": _deployment,
    "aggregation": _aggregation,
    "gossip": _gossip,
}

FAMILY_NAMES = tuple(_FAMILIES)
"""Names of the families."""


@cache
def family(name: str) -> Family:
    """The family of that name; imported on first use.

    Raises
    ------
    UnknownNameError
        If there is none.
    """
    if name not in _FAMILIES:
        raise UnknownNameError(f"there is no family '{name}'; there are: {', '.join(FAMILY_NAMES)}")
    return _FAMILIES[name]()
