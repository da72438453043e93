"""A bound on congestion from distances alone, before the methods that search for designs."""

from dataclasses import dataclass
from math import inf
from typing import Any

from ddlopt.frontier.topology.formulations.min_volume import MinVolume
from ddlopt.models.tolerances import BOUND_MARGIN
from ddlopt.models.topology import TopologyInstance
from ddlopt.solvers.backends.highs import Highs
from ddlopt.solvers.certify import MethodOutput
from ddlopt.solvers.contracts import Limits
from ddlopt.solvers.exact import build_model
from ddlopt.solvers.heuristic import CertifiedMethod, Clock

_MOST_SERVERS = 16
"""Beyond them the program, with n³ variables for a layer of hops, takes longer than people wait."""


@dataclass(frozen=True)
class VolumeBound(CertifiedMethod, uses=("start", "seed", "threads")):
    """The bound of :class:`.MinVolume` at the root of its tree, beside the design that is given.

    Branch and bound has a bound that is worth something when it is nearly done, and programs with flows have this one
    after ten times as long: where time is short it is most of what is proven.
    """

    @property
    def name(self) -> str:
        """``volume-bound``."""
        return "volume-bound"

    def refuses(self, instance: TopologyInstance) -> str | None:
        """What the program does not cover, and many servers."""
        if instance.servers > _MOST_SERVERS:
            return f"there are {instance.servers} servers, and it is for {_MOST_SERVERS} at most"
        return MinVolume().refuses(instance)

    def find(self, instance: TopologyInstance, limits: Limits, seed: int, clock: Clock, start: Any) -> MethodOutput:
        """The design as it is, and the bound."""
        program = MinVolume()
        outcome = Highs({"mip_max_nodes": 1}).solve(build_model("topology", program, instance), limits, seed)
        value = -inf if outcome.bound is None else outcome.bound * (1 - BOUND_MARGIN)
        bound = program.objective_value(instance, value) if value > 0 else None
        return MethodOutput(start, bound=bound)
