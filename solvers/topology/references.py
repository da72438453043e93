"""Iteration times on networks that are not optical: figures to compare a design with."""

import time
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar

from ddlopt.models.catalogue import outside_of_room
from ddlopt.models.errors import NotApplicableError, OptionError
from ddlopt.models.topology import TopologyInstance
from ddlopt.solvers.certify import Gate
from ddlopt.solvers.contracts import Limits, ProgressCallback, Result


class _Switched(ABC):
    """Every server has one port into a switched network and nothing else limits it.

    A ring all-reduce over a non-blocking switch sends and receives ``hop_bytes`` per member, which is
    bandwidth-optimal, and model-parallel bytes go straight to their target. The busiest port then takes
    ``max(instance.node_bytes) / port bandwidth``.
    """

    family: ClassVar[str] = "topology"
    uses: ClassVar[frozenset[str]] = frozenset()
    name: ClassVar[str]

    @property
    @abstractmethod
    def links_per_port(self) -> Any:
        """Bandwidth of a port relative to all d links of a server: 1 is d times the link bandwidth."""

    def refuses(self, instance: TopologyInstance) -> str | None:
        """Every instance of topology design has this figure."""
        return outside_of_room(self, instance)

    def solve(
        self,
        instance: TopologyInstance,
        limits: Limits,
        seed: int = 0,
        progress: ProgressCallback | None = None,
        start: Any = None,
    ) -> Result:
        """The iteration time, with status ``reference`` and no solution."""
        reason = self.refuses(instance)
        if reason is not None:
            raise NotApplicableError(f"{self.name} does not cover '{instance.name}': {reason}")
        began = time.perf_counter()
        bytes_per_link = float(instance.node_bytes.max()) / (instance.degree * self.links_per_port)
        gate = Gate(instance, self.name, limits, seed, time.perf_counter() - began)
        return gate.reference(
            instance.iteration_time_s(bytes_per_link),
            {"communication_s": bytes_per_link / instance.link_bandwidth_bytes_per_s},
            f"reference: one port of {self.links_per_port:.3g} times d link bandwidths per server",
        )


@dataclass(frozen=True)
class IdealSwitch(_Switched):
    """A non-blocking switch; every server has one port of bandwidth d * B."""

    name: ClassVar[str] = "ideal-switch"

    @property
    def links_per_port(self) -> float:
        """All d links' bandwidth."""
        return 1.0


@dataclass(frozen=True)
class FatTree(_Switched):
    """A full-bisection fat-tree that costs as much as the optical network: the ideal switch at a lower bandwidth.

    Cost is taken to be proportional to bandwidth, so that the port bandwidth is d * B / ``cost_ratio``.

    Parameters
    ----------
    cost_ratio : float
        How many times more a full-bisection switch of the same bandwidth costs than the optical network. The published
        figure is 3.2.

    References
    ----------
    Thesis on TopoOpt, MIT, https://hdl.handle.net/1721.1/147321 (abstract).
    """

    cost_ratio: float = 3.2

    name: ClassVar[str] = "fat-tree"

    def __post_init__(self) -> None:
        if not self.cost_ratio > 0:
            raise OptionError(f"cost_ratio must be positive, got {self.cost_ratio}")

    @property
    def links_per_port(self) -> float:
        """The bandwidth that the same money buys."""
        return 1 / self.cost_ratio
