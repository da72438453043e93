"""Best rings and routes on links that are given."""

from dataclasses import dataclass
from math import inf
from typing import Any, ClassVar, Literal

import pyomo.environ as pyo

from ddlopt.models.tolerances import BOUND_MARGIN
from ddlopt.models.topology.formulations.open_demand import Demand, add_open_demand, read_open_design, scale_bytes
from ddlopt.models.topology.formulations.rows.throughput import (
    RingChoice,
    add_demand,
    add_flows,
    all_bytes,
    orders_of,
    read_design,
    refuses_faint_traffic,
    refuses_rings,
    unit_bytes,
)
from ddlopt.models.topology.instance import TopologyInstance
from ddlopt.models.topology.solution import TopologyDesign


@dataclass(frozen=True)
class FixedLinks:
    r"""Rings and routes of least iteration time when the links :math:`m_{ij}` are laid already: a linear program.

    The formulation of :class:`~ddlopt.models.topology.formulations.rings_and_routes.RingsAndRoutes` with its links
    fixed, a maximum concurrent flow in which every group also chooses how to share its gradient among candidate rings:

    .. math::
        \max\ \lambda \quad \text{s.t.} \quad
        \textstyle\sum_r \beta_{kr} = \lambda, \quad
        \sum_s f^s_{ij} \le m_{ij}, \quad
        \sum_u f^s_{uv} - \sum_w f^s_{vw} = \lambda T_{sv} + \sum_k c_k \sum_{r:\ v = \mathrm{succ}_r(s)} \beta_{kr},

    with bytes measured in U, those of the busiest server over its d links. Only links that are there have flows,
    about n² d of them; it polishes what heuristics find for a few dozen servers.

    Parameters
    ----------
    links : tuple of (int, int, int)
        As in :class:`~ddlopt.models.topology.solution.TopologyDesign`: (i, j, count), i < j for duplex optics.
    rings : {"generators", "all", "relaxed"} or tuple of tuple of orders
        As in ``RingsAndRoutes``: a rule, or each group's candidate rings as cyclic orders of its members.
    demand : {"fixed", "open"}
        ``open``: as in ``RingsAndRoutes``, a host model decides what is sent. As the links are constants, the program
        is linear without scaling: it keeps the congestion z with :math:`\sum_s f^s_{ij} \le z m_{ij}`, λ = 1
        elsewhere.
    scale_bytes : float, optional
        With an open demand: U, as in ``RingsAndRoutes``.

    Ports
    -----
    ``demand[s, t]``, ``load[i, j]``
        Units of U from s to t, and on the links from i to j, times λ.
    ``flow[s, i, j]`` : with host forwarding
        Those of source s on the links from i to j.
    ``hop[k, s, t]``
        Part of group k's gradient on rings where t follows s, times λ.
    ``ring_share[k, r]`` : unless rings are ``relaxed``
        Part of group k's gradient on its r-th candidate ring, times λ.
    ``throughput`` : with a fixed demand
        λ = U / z.
    ``group_units[k]``, ``traffic_units[s, t]`` : with an open demand
        As in ``RingsAndRoutes``; λ is 1 then.
    ``congestion`` : with an open demand
        z / U.
    ``links_carry_their_load[i, j]``
        A constraint; its dual is the worth of one more link from i to j.
    ``objective``
        -λ, or z / U, to be minimised.
    """

    links: tuple[tuple[int, int, int], ...]
    rings: RingChoice = "generators"
    demand: Demand = "fixed"
    scale_bytes: float | None = None

    sense: ClassVar[Literal["minimize", "maximize"]] = "minimize"

    def refuses(self, instance: TopologyInstance) -> str | None:
        """Links or rings that are not of this instance."""
        for i, j, _ in self.links:
            if not (0 <= i < instance.servers and 0 <= j < instance.servers and i != j):
                return f"the given link ({i}, {j}) joins no two of its {instance.servers} servers"
        faint = refuses_faint_traffic(instance) if self.demand == "fixed" else None
        return refuses_rings(instance, self.rings) or faint

    def scope(self, instance: TopologyInstance) -> str | None:
        """Always the given links."""
        return "fixed links"

    def build(self, block: pyo.Block, instance: TopologyInstance) -> None:
        """Fill ``block`` with ring shares and flows on the links."""
        counts: dict[tuple[int, int], int] = {}
        for i, j, count in self.links:
            counts[i, j] = counts.get((i, j), 0) + count
            if instance.optics == "duplex":
                counts[j, i] = counts.get((j, i), 0) + count
        orders = orders_of(instance, self.rings)
        is_open = self.demand == "open"
        if is_open:
            block.congestion = pyo.Var(bounds=(0, None), doc="busiest link's load over the unit")
            block.objective = pyo.Expression(expr=block.congestion)
            add_open_demand(block, instance, orders, self.scale_bytes or scale_bytes(instance), 1.0)
        else:
            # Simple paths never load a link with more than everything: a lower throughput means no route at all.
            least = unit_bytes(instance) / all_bytes(instance) * (1 - BOUND_MARGIN)
            block.throughput = pyo.Var(bounds=(least, None), doc="unit over the busiest link's load")
            block.objective = pyo.Expression(expr=-block.throughput)
            add_demand(block, instance, orders, block.throughput)
        if instance.host_forwarding:
            add_flows(block, sorted(counts))
        else:
            block.ARCS = pyo.Set(dimen=2, initialize=list(block.DEMANDS))
            block.load = pyo.Expression(
                block.ARCS, rule=lambda b, i, j: b.demand[i, j], doc="demand of the pair, over its own link"
            )

        @block.Constraint(block.ARCS, doc="links carry their load")
        def links_carry_their_load(b: Any, i: int, j: int) -> Any:
            count = counts.get((i, j), 0)
            return b.load[i, j] <= (count * b.congestion if is_open else count)

    def start(self, block: pyo.Block, instance: TopologyInstance, solution: TopologyDesign) -> None:
        """Nothing: a linear program needs no start."""

    def read(self, block: pyo.Block, instance: TopologyInstance) -> TopologyDesign:
        """The design on the given links.

        Raises
        ------
        SolverError
            If duplex links cannot be spread over planes.
        """
        links: dict[tuple[int, int], int] = {}
        for i, j, count in self.links:
            links[i, j] = links.get((i, j), 0) + count
        if self.demand == "open":
            return read_open_design(block, instance, links)
        return read_design(block, instance, links, orders_of(instance, self.rings), pyo.value(block.throughput))

    def objective_value(self, instance: TopologyInstance, value: float) -> float:
        """Iteration time in seconds for -λ, or for z / U."""
        if self.demand == "open":
            return instance.iteration_time_s((self.scale_bytes or scale_bytes(instance)) * value)
        return instance.iteration_time_s(unit_bytes(instance) / -value) if value < 0 else inf
