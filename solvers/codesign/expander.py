"""Strategies for a random regular network: what one gets from links that nobody chose."""

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from ddlopt.models.codesign.formulations.rows.coupling import plan_of
from ddlopt.models.codesign.instance import CodesignInstance
from ddlopt.models.codesign.solution import CodesignPlan
from ddlopt.models.errors import OptionError
from ddlopt.models.topology import AllReduceGroup, TopologyInstance
from ddlopt.solvers.codesign.data_parallel import data_parallel
from ddlopt.solvers.codesign.fixed_routes import FixedRoutes
from ddlopt.solvers.codesign.half_rounds import StrategyPlane, best_on_routes
from ddlopt.solvers.codesign.topoopt.mcmc import Metropolis
from ddlopt.solvers.heuristic import Answer, Clock, Heuristic
from ddlopt.solvers.topology.expander import Expander as RandomLinks


@dataclass(frozen=True)
class Expander(Heuristic, uses=("seed",)):
    """A random d-regular network (:class:`ddlopt.solvers.topology.expander.Expander`) and strategies chosen for it.

    Every group uses the rings of its generators with the fewest hops, every pair a random shortest path
    (:class:`.FixedRoutes`). TopoOpt's evaluation has such a baseline by this name.

    Parameters
    ----------
    strategies : {"exact", "mcmc"}
        A Metropolis walk, and for ``exact`` the integer program on these routes, which starts from what it found. With
        links so irregular every link has a row of its own, and the program may run out of time.
    plane_s : float
        Seconds that the integer program may take.
    budget : int
        Proposals of the walk.
    """

    strategies: StrategyPlane = "exact"
    plane_s: float = 20.0
    budget: int = 4000

    kernels: ClassVar[tuple[str, ...]] = ("ddlopt.solvers.topology.routing",)

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.plane_s > 0:
            raise OptionError(f"plane_s must be a positive number of seconds, got {self.plane_s}")

    @property
    def name(self) -> str:
        """``expander``."""
        return "expander"

    def refuses(self, instance: CodesignInstance) -> str | None:
        """Servers that do not forward: random links join too few of them."""
        return (
            None if instance.host_forwarding else "host_forwarding is off, and random links join few servers directly"
        )

    def answer(self, instance: CodesignInstance, seed: int, clock: Clock, start: Any) -> Answer[CodesignPlan]:
        """The strategies for the links drawn, and in the details their time with data parallelism."""
        # Random links do not depend on what is sent.
        everybody = AllReduceGroup(members=tuple(range(instance.servers)), gradient_bytes=1.0)
        nothing = np.zeros((instance.servers, instance.servers))
        some_job = TopologyInstance(
            name=instance.name, **instance.fabric, allreduce_groups=(everybody,), traffic_bytes=nothing
        )
        links, _ = RandomLinks().answer(some_job, seed, clock, None)
        routes = FixedRoutes.of(instance, links, seed=seed)
        first = data_parallel(instance, clock)
        choices = Metropolis(self.budget).search(routes, first, seed, clock).choices
        if self.strategies == "exact":
            choices, _ = best_on_routes(routes, choices, clock, seed, self.plane_s)
        return plan_of(instance, choices, routes.design_for(choices)), {"data_parallel_s": routes.time_s(first)}
