"""Strategies, links, rings and routes in one mixed-integer linear program."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np
import pyomo.environ as pyo

from ddlopt.models.codesign.demand import demand_of
from ddlopt.models.codesign.formulations.rows.coupling import add_bytes, cycle_time_s, read_plan, template_of, tie
from ddlopt.models.codesign.formulations.rows.strategy_choice import add_strategies, read_choices, set_choices
from ddlopt.models.codesign.formulations.strategy_bound import StrategyBound
from ddlopt.models.codesign.instance import CodesignInstance
from ddlopt.models.codesign.iteration_time import add_iteration_time, time_unit_s
from ddlopt.models.codesign.solution import CodesignPlan
from ddlopt.models.codesign.tables import Tables, tables_of
from ddlopt.models.contracts import Instance
from ddlopt.models.covering import FormulationBase
from ddlopt.models.linear import check_range
from ddlopt.models.tolerances import SOLVER_TOL
from ddlopt.models.topology.formulations.rings_and_routes import RingsAndRoutes
from ddlopt.models.topology.formulations.rows.throughput import FAINT, RingChoice, all_bytes
from ddlopt.models.topology.instance import TopologyInstance
from ddlopt.models.units import LARGEST_OF_EQUATIONS, check_big_m

_LEAST_PART = 1e-2
"""Part of a known time that communication may take at least: a bound on it that is too close to none is of no use."""
_MOST_GIVEN = 32
"""Servers beyond which the flows over given links, n² d of them, are too many."""
_LARGEST = 1e5
"""Bytes on a link over those of the busiest one, from which on a link that is off by a tolerance carries too many."""


@dataclass(frozen=True)
class JointStrategyTopology(FormulationBase):
    r"""Which strategy every layer takes, which links to lay, which rings and which routes, all at once.

    :class:`~ddlopt.models.codesign.formulations.strategy_bound.StrategyBound` chooses strategies under bounds that hold
    for every topology; here the topology itself is there, too:
    :class:`~ddlopt.models.topology.formulations.rings_and_routes.RingsAndRoutes` with an open demand stands unchanged
    in the block ``network``. The two meet in its ports only,

    .. math::
        a_k = \tfrac{2 (|G_k| - 1)}{|G_k|} \textstyle\sum_{q \ni k} r_q, \qquad b_{st} = \sum_p U_{p,st}\, m_p ,

    hop bytes of groups and traffic on the left, gradient bytes r of group sets and bytes m of patterns on the right,
    linear in the strategies x and the pairs y that they make along edges. T = C + z, or the larger of them, is to be
    minimised. What is not linear is that the busiest link carries z: :math:`\sum_s f^s_{ij} \le z\, m_{ij}` with z and
    the number of links :math:`m_{ij}` variable; where ``links`` are given it is, and only the strategies are integer.

    A pair's load is split over unary copies :math:`c = 1 \dots d` of its link, each loaded with at most z, and with at
    most :math:`\bar z` if it is laid, else nothing. That is exact, and everything else is linear as it stands.

    Scaling the topology by 1/z instead, the stronger form where bytes are given, needs products with strategies: a
    fractional x leaves them so much room that the relaxation is mostly the weaker one.

    Parameters
    ----------
    rings : {"generators", "all", "relaxed"} or tuple of tuple of orders
        As in ``RingsAndRoutes``; candidates are of the groups of
        :func:`~ddlopt.models.codesign.formulations.rows.coupling.template_of`, in its order.
    bounds : bool
        Add the rows of ``StrategyBound``: what servers send and receive, and the volume of all links.
    achievable_s : float, optional
        Iteration time of some plan in scope; worse ones are excluded. Default: that of a plan on one cycle of links,
        :func:`~ddlopt.models.codesign.formulations.rows.coupling.cycle_time_s`. A host whose objective is another one
        than ``objective`` gives ``inf``: then nothing is excluded.
    links : tuple of (int, int, int), optional
        Links that are laid already, up to 32 servers. For more see
        :class:`~ddlopt.models.codesign.formulations.strategies_on_routes.StrategiesOnRoutes`.
    most_servers : int
        More are refused, unless links are given. Symmetric links keep the bound low for long, and time grows by an
        order of magnitude for every server or two.

    Ports
    -----
    ``strategy[l, a]``, ``transition[e, a, b]``, ``compute``, ``reduced[q]``, ``moved[p]``
        As of :func:`~ddlopt.models.codesign.formulations.rows.strategy_choice.add_strategies`: strategies of layers and
        of the ends of edges, compute time, gradient bytes of group sets and bytes of patterns; all here in units of
        :func:`~ddlopt.models.codesign.iteration_time.time_unit_s`.
    ``network``
        A block with the ports of ``RingsAndRoutes``, in the same units; it is empty if no strategy sends anything.
    ``congestion``
        z over the bandwidth of a link.
    ``time``, ``objective``
        C + z or the larger of them, to be minimised.

    References
    ----------
    W. Wang et al., "TopoOpt: Co-optimizing network topology and parallelization strategy for distributed training
    jobs", NSDI 2023 (the problem, and its alternating answer). G. McCormick, "Computability of global solutions to
    factorable nonconvex programs", Math. Program. 10, 1976 (products). The joint program is ours.
    """

    rings: RingChoice = "generators"
    bounds: bool = True
    achievable_s: float | None = None
    most_servers: int = 8
    links: tuple[tuple[int, int, int], ...] | None = None

    covers: ClassVar[type[Instance]] = CodesignInstance
    sense: ClassVar[Literal["minimize", "maximize"]] = "minimize"

    def refuses(self, instance: CodesignInstance) -> str | None:
        """Too many servers, bytes that drown in tolerances, or rings that do not fit the groups."""
        if self.links is not None and instance.servers > _MOST_GIVEN:
            return f"it has {instance.servers} servers, but flows are for at most {_MOST_GIVEN}; use StrategiesOnRoutes"
        if self.links is None and instance.servers > self.most_servers:
            return (
                f"it has {instance.servers} servers, but one program for everything is for at most "
                f"{self.most_servers}; raise most_servers, or use the method 'bound-guided'"
            )
        template = template_of(instance)
        if template is None:
            return None
        faint = _refuses_faint_bytes(instance) if self.links is None else None
        return faint or self._topology(instance, template).refuses(template)

    def scope(self, instance: CodesignInstance) -> str | None:
        """What of all links and rings is searched."""
        if self.links is not None:
            return "fixed links"
        template = template_of(instance)
        return None if template is None else self._topology(instance, template).scope(template)

    def build(self, block: pyo.Block, instance: CodesignInstance) -> None:
        """Fill ``block`` with strategies, links, rings and routes."""
        template = template_of(instance)
        if template is not None and self.links is None:
            # Without forwarding no plan is known, and a link may have the bytes of all strategies together.
            least, most = self._congestion_range(instance, template)
            check_big_m(most, max(least, _unit_bytes(instance)), instance.name, "bytes on a link", _LARGEST)
            # A strategy that is off by 1e-9 has bytes in equations, which solvers then call infeasible.
            check_big_m(_most_bytes(instance), max(most, _unit_bytes(instance)), instance.name, "bytes of a strategy")
        self._fill(block, instance, template)
        if self.links is not None:
            return
        # Nor can times of strategies be that much longer than an iteration of those that may not fit into memory.
        check_range(block, instance.name, LARGEST_OF_EQUATIONS)

    def _fill(self, block: pyo.Block, instance: CodesignInstance, template: TopologyInstance | None) -> None:
        """Fill ``block``, whatever the figures are."""
        if self.bounds:
            StrategyBound().build(block, instance)
        else:
            add_strategies(block, instance, time_unit_s(instance), collapse=True)
            block.congestion = pyo.Var(bounds=(0, None), doc="bytes on the busiest link")
            add_iteration_time(block, instance, block.congestion)
        block.network = pyo.Block()
        if template is None:
            return
        topology = self._topology(instance, template)
        topology.build(block.network, template)
        add_bytes(block)
        tie(block, block.network, instance, block.reduced_bytes, block.moved_bytes)
        block.network_is_congested = pyo.Constraint(
            expr=block.network.congestion <= block.congestion, doc="congestion covers that of the network"
        )

    def start(self, block: pyo.Block, instance: CodesignInstance, solution: CodesignPlan) -> None:
        """Set strategies and links of a plan; the rest follows from them."""
        set_choices(block, instance, solution.choices(instance))
        template = template_of(instance)
        if template is not None:
            self._topology(instance, template).start(block.network, template, solution.design)

    def read(self, block: pyo.Block, instance: CodesignInstance) -> CodesignPlan:
        """The plan that the values describe.

        Raises
        ------
        SolverError
            If a strategy or a number of links is not integral, or relaxed hops are no mixture of rings.
        """
        choices, template = read_choices(block, instance), template_of(instance)
        topology = None if template is None else self._topology(instance, template)
        return read_plan(block, instance, choices, topology)

    def objective_value(self, instance: CodesignInstance, value: float) -> float:
        """Iteration time in seconds."""
        return time_unit_s(instance) * value

    def _topology(self, instance: CodesignInstance, template: TopologyInstance) -> RingsAndRoutes:
        """The topology's formulation, with bounds on z that the strategies leave."""
        _, most = self._congestion_range(instance, template)
        return RingsAndRoutes(
            rings=self.rings,
            form="congestion",
            achievable_bytes=most,
            demand="open",
            scale_bytes=_unit_bytes(instance),
            links=self.links,
        )

    def _congestion_range(self, instance: CodesignInstance, template: TopologyInstance) -> tuple[float, float]:
        """Least and most bytes on the busiest link of a plan that is no worse than a known one."""
        known = self.achievable_s
        if known is None and self.links is None:
            known = cycle_time_s(instance)
        most = all_bytes(template)
        if known is not None:
            spared = tables_of(instance).least_path_s if instance.overlap == "none" else 0.0
            left = known * (1 + SOLVER_TOL) - spared
            most = min(most, max(left, _LEAST_PART * known) * instance.link_bandwidth_bytes_per_s)
        return min(least_congestion(tables_of(instance)), most), most


def _refuses_faint_bytes(instance: CodesignInstance) -> str | None:
    """Why some strategy sends too little beside the time of an iteration: it would need no links within tolerances."""
    tables, carried = tables_of(instance), _unit_bytes(instance)
    least = _per_byte(tables, np.min)

    def told(what: str, amount: float) -> str:
        return (
            f"{what} sends {amount:g} bytes from server to server, which drown in the tolerances of solvers beside the "
            f"{carried:g} that a link carries in an iteration; use the method 'bound-guided'"
        )

    for layer, strategies in zip(instance.layers, tables.own, strict=True):
        for strategy, own in zip(layer.strategies, strategies, strict=True):
            for i, amount in own.items():
                if 0 < least[i] * amount < FAINT * carried:
                    return told(f"strategy '{strategy.name}' of layer '{layer.name}'", least[i] * amount)
    for edge, (source, _) in enumerate(instance.edges):
        for i in tables.moved_figures(edge):
            if 0 < (amount := least[i] * float(tables.edge_bytes[edge])) < FAINT * carried:
                return told(f"the output of layer '{instance.layers[source].name}'", amount)
    return None


def _most_bytes(instance: CodesignInstance) -> float:
    """What any strategy has to reduce in a group, or sends from one server to another, at most."""
    tables = tables_of(instance)
    largest = _per_byte(tables, np.max)
    found = [largest[i] * amount for strategies in tables.own for own in strategies for i, amount in own.items()]
    for edge, amount in enumerate(tables.edge_bytes.tolist()):
        found += [largest[i] * amount for i in tables.moved_figures(edge)]
    return max(found, default=0.0)


def _per_byte(tables: Tables, of: Callable[..., Any]) -> list[float]:
    """By figure: 1 for group sets, and the least or most that a pair of servers sends of a pattern's byte."""
    return [1.0] * len(tables.groups_of) + [float(of(pattern.unit.data)) for pattern in tables.patterns]


def _unit_bytes(instance: CodesignInstance) -> float:
    """What a link carries in the unit of time."""
    return time_unit_s(instance) * instance.link_bandwidth_bytes_per_s


def least_congestion(tables: Tables) -> float:
    """Bytes on the busiest link that no choice is below: least bytes times hops of each layer and edge by itself."""
    demand = demand_of(tables)
    hops = demand.hop_bytes.tolist()
    total = sum(
        min(sum(hops[i] * amount for i, amount in own.items()) for own in strategies) for strategies in tables.own
    )
    for edge, amount in enumerate(tables.edge_bytes.tolist()):
        least = [hops[i] for i in tables.moved_figures(edge)]
        total += amount * min(least if (tables.moves[edge] >= 0).all() else [0.0])
    return float(total / demand.capacity)
