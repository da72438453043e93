"""Best strategies, rings and routes where the links are given."""

from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import pyomo.environ as pyo

from ddlopt.models.codesign.formulations.rows.coupling import add_bytes, read_plan, template_of, tie
from ddlopt.models.codesign.formulations.rows.strategy_choice import add_strategies, read_choices, set_choices
from ddlopt.models.codesign.instance import CodesignInstance
from ddlopt.models.codesign.iteration_time import add_iteration_time, time_unit_s
from ddlopt.models.codesign.solution import CodesignPlan
from ddlopt.models.topology.formulations.fixed_links import FixedLinks
from ddlopt.models.topology.formulations.rows.throughput import RingChoice

LARGEST = 32
"""Servers beyond which the flows, n² d of them, are too many."""


@dataclass(frozen=True)
class StrategiesOnLinks:
    r"""The strategies of least iteration time on links that are given, with the best rings and routes for them.

    Strategies (:func:`~ddlopt.models.codesign.formulations.rows.strategy_choice.add_strategies`) decide what is sent,
    and rings and routes (:class:`~ddlopt.models.topology.formulations.fixed_links.FixedLinks` with an open demand, in
    ``network``) how. As the links :math:`m_{ij}` are constants, the load of the busiest one is linear, :math:`\sum_s
    f^s_{ij} \le z m_{ij}`, and only the strategies are integer:

    .. math::
        \min\ C + z \quad (\text{or } \max(C, z)) \quad \text{s.t.}\quad
        a_k = \tfrac{2 (|G_k| - 1)}{|G_k|} \textstyle\sum_{q \ni k} r_q, \qquad b_{st} = \sum_p U_{p,st}\, m_p

    with the topology's ports a (hop bytes of groups) and b (traffic), gradient bytes r of group sets, bytes m of
    patterns and :math:`U_p` what s sends to t for each byte of pattern p. For more servers see
    :class:`~ddlopt.models.codesign.formulations.strategies_on_routes.StrategiesOnRoutes`.

    Parameters
    ----------
    links : tuple of (int, int, int)
        As in :class:`~ddlopt.models.topology.solution.TopologyDesign`.
    rings : {"generators", "all", "relaxed"} or tuple of tuple of orders
        As in ``RingsAndRoutes``; candidates are of the groups of
        :func:`~ddlopt.models.codesign.formulations.rows.coupling.template_of`, in its order.

    Ports
    -----
    ``strategy[l, a]``, ``transition[e, a, b]``, ``compute``, ``reduced[q]``, ``moved[p]``
        As of :func:`~ddlopt.models.codesign.formulations.rows.strategy_choice.add_strategies`: strategies of layers and
        of the ends of edges, compute time, gradient bytes of group sets and bytes of patterns; all here in units of
        :func:`~ddlopt.models.codesign.iteration_time.time_unit_s`.
    ``network``
        A block with the ports of ``FixedLinks``, in the same units; it is empty if no strategy sends anything.
    ``congestion``
        z over the bandwidth of a link.
    ``time``, ``objective``
        C + z or the larger of them, to be minimised.
    """

    links: tuple[tuple[int, int, int], ...]
    rings: RingChoice = "generators"

    sense: ClassVar[Literal["minimize", "maximize"]] = "minimize"

    def refuses(self, instance: CodesignInstance) -> str | None:
        """Too many servers; links or rings that are not of this instance."""
        if instance.servers > LARGEST:
            return f"it has {instance.servers} servers, but flows are for at most {LARGEST}; use StrategiesOnRoutes"
        template = template_of(instance)
        return None if template is None else self._topology(instance).refuses(template)

    def scope(self, instance: CodesignInstance) -> str | None:
        """Always the given links."""
        return "given links"

    def build(self, block: pyo.Block, instance: CodesignInstance) -> None:
        """Fill ``block`` with strategies, rings and routes."""
        add_strategies(block, instance, time_unit_s(instance), collapse=True)
        block.congestion = pyo.Var(bounds=(0, None), doc="bytes on the busiest link")
        block.network = pyo.Block()
        template = template_of(instance)
        if template is not None:
            add_bytes(block)
            self._topology(instance).build(block.network, template)
            tie(block, block.network, instance, block.reduced_bytes, block.moved_bytes)
            block.congestion_of_network = pyo.Constraint(
                expr=block.network.congestion <= block.congestion, doc="congestion covers that of the network"
            )
        add_iteration_time(block, instance, block.congestion)

    def start(self, block: pyo.Block, instance: CodesignInstance, solution: CodesignPlan) -> None:
        """Set the strategies of a plan; the rest is linear."""
        set_choices(block, instance, solution.choices(instance))

    def read(self, block: pyo.Block, instance: CodesignInstance) -> CodesignPlan:
        """The plan on the given links.

        Raises
        ------
        SolverError
            If a strategy is chosen in part, or duplex links cannot be spread over planes.
        """
        return read_plan(block, instance, read_choices(block, instance), self._topology(instance))

    def objective_value(self, instance: CodesignInstance, value: float) -> float:
        """Iteration time in seconds."""
        return time_unit_s(instance) * value

    def _topology(self, instance: CodesignInstance) -> Any:
        unit = time_unit_s(instance) * instance.link_bandwidth_bytes_per_s
        return FixedLinks(self.links, self.rings, demand="open", scale_bytes=unit)
