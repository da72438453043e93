"""Strategies that no topology can make faster than they say: the certified master of the joint problem."""

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import pyomo.environ as pyo
from pyomo.core.expr.numeric_expr import LinearExpression

from ddlopt.models.codesign.demand import Demand, demand_of, heaviest_rows, ring_factor
from ddlopt.models.codesign.formulations.rows.congestion_cuts import CongestionCut, add_cuts
from ddlopt.models.codesign.formulations.rows.strategy_choice import add_strategies, linear
from ddlopt.models.codesign.formulations.rows.strategy_program import StrategyProgram
from ddlopt.models.codesign.instance import CodesignInstance
from ddlopt.models.codesign.iteration_time import add_iteration_time, time_unit_s
from ddlopt.models.codesign.tables import tables_of
from ddlopt.models.tolerances import FEASIBILITY_TOL

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class StrategyBound(StrategyProgram):
    r"""Strategies of least compute time plus a *lower bound* on the communication, for every topology at once.

    A choice of strategies has :math:`r_q` gradient bytes in each group of set q and :math:`m_p` bytes of pattern p
    (:func:`~ddlopt.models.codesign.formulations.rows.strategy_choice.add_strategies`). Let z be the bytes on the
    busiest link of the best topology for them. The program is

    .. math::
        \min\ C + z \quad (\text{or } \max(C, z)) \quad \text{s.t.}\quad
        & d z \ge \textstyle\sum_q \rho_{sq} r_q + \sum_p \sigma_{sp} m_p \quad \text{for every server } s
            \text{, sending and receiving} \\
        & \mathcal{C} z \ge \textstyle\sum_q \sum_s \rho_{sq} r_q + \sum_p H_p m_p + \sum_s e_s , \quad
          e_s \ge \sum_p (\sigma^{in}_{sp} - \sigma^{out}_{sp}) m_p ,\ e_s \ge 0

    with :math:`\rho_{sq} = 2(k-1)/k` if server s is in a group of k of set q, :math:`\sigma_{sp}` what s sends
    (receives) of a byte of p, :math:`\mathcal{C}` the directions of links, n d or 2⌊n/2⌋ d for duplex optics, and
    :math:`H_p` the least bytes times hops of a byte of p.

    **Every row holds for every topology.** In each ring each member sends one hop and receives one, over at least one
    link, and everything that leaves (enters) s does so over at most d links of z bytes each: the first row. For the
    second, let D be the distances between servers over the links of the best topology. All loads together are at most
    :math:`\mathcal{C} z`, and at least bytes times hops: :math:`\sum_q \sum_s \rho_{sq} r_q` for rings, as every hop of
    a ring is at least one link, and :math:`\langle \sum_p m_p U_p, D \rangle = \sum_p m_p \langle U_p, D \rangle` for
    patterns. The degree bounds how many servers are within h hops, so that
    :math:`\langle U_p, D \rangle \ge H_p` for each p by itself
    (:func:`~ddlopt.models.topology.hop_bytes.least_hop_bytes`).
    Choosing D for each p apart only makes the sum smaller: :math:`\min_D \sum_p m_p \langle U_p, D \rangle \ge
    \sum_p m_p \min_D \langle U_p, D \rangle`. That is why the row is linear in m, and why it is weaker than the bound
    of the one topology problem that a choice leaves. :attr:`cuts` bring that back where it has been solved. Finally the
    links into s carry what it receives and forwards, those out of it what it sends and forwards, and there are as many
    ports for either; so :math:`\mathcal{C} z` is at least what is sent and forwarded by all, plus
    :math:`\max(\text{received} - \text{sent}, 0)` of each.

    Without host forwarding a pair's own traffic is on its direct links: :math:`L z \ge \sum_p m_p U_{p,st}`, L = d or,
    where links are not parallel, 1; a ring then leaves each member over at most min(d, k-1) links; and what a server
    cannot reach is not sent at all.

    ``network="switch"`` describes a non-blocking switch instead, where the server rows are all there is, so that it is
    exact. With ``racks`` the servers of each share ``1/oversubscription`` of their ports' bandwidth for what leaves the
    rack, and for what enters it. A ring that visits one rack after the other leaves each once, and none does with less.

    Rows that another row of the same kind exceeds everywhere are left out.

    Parameters
    ----------
    network : {"any", "switch"}
    links_per_port : float
        Bandwidth of a server's port to the switch, in units of d links.
    racks : tuple of tuple of int
    oversubscription : float
        At least 1.
    cuts : tuple of (choices, bytes)
        What is known about single choices: no topology has fewer bytes on its busiest link. Each cut also holds for all
        choices that send no less, see :func:`~ddlopt.models.codesign.formulations.rows.congestion_cuts.add_cuts`.
    collapse : bool
        Count the layers of a class of twins by strategy, see ``add_strategies``.

    Ports
    -----
    ``strategy[l, a]``, ``transition[e, a, b]``, ``compute``, ``reduced[q]``, ``moved[p]``
        As of :func:`~ddlopt.models.codesign.formulations.rows.strategy_choice.add_strategies`: strategies of layers and
        of the ends of edges, compute time, gradient bytes of group sets and bytes of patterns; all here in units of
        :func:`~ddlopt.models.codesign.iteration_time.time_unit_s`.
    ``share[i]``
        Bytes of set i or, after the sets, pattern i - sets, times what the busiest server sends or receives of one.
    ``congestion``
        z over the bandwidth of a link.
    ``time``, ``objective``
        C + z or the larger of them, to be minimised.

    References
    ----------
    The volume argument is that of the Moore bound; J. Hooker and G. Ottosson, "Logic-based Benders decomposition",
    Math. Program. 96, 2003 (cuts from subproblems that are not linear). Rows and lifting are ours.
    """

    network: Literal["any", "switch"] = "any"
    links_per_port: float = 1.0
    racks: tuple[tuple[int, ...], ...] = ()
    oversubscription: float = 1.0
    cuts: tuple[CongestionCut, ...] = ()
    collapse: bool = True

    def __post_init__(self) -> None:
        if self.network not in ("any", "switch"):
            raise ValueError(f"network is {self.network!r}; expected 'any' or 'switch'")
        if not self.links_per_port > 0:
            raise ValueError(f"links_per_port is {self.links_per_port:g}; expected more than 0")
        if not self.oversubscription >= 1:
            raise ValueError(f"oversubscription is {self.oversubscription:g}; expected at least 1")
        if self.network == "any" and (self.racks or self.links_per_port != 1 or self.oversubscription != 1):
            raise ValueError("links_per_port, racks and oversubscription describe a switch; use network='switch'")

    def refuses(self, instance: CodesignInstance) -> str | None:
        """Racks that do not fit the servers, or cuts for other layers."""
        seated = sorted(server for rack in self.racks for server in rack)
        if self.racks and seated != list(range(instance.servers)):
            return f"racks must hold each of the {instance.servers} servers once"
        if any(len(choices) != len(instance.layers) for choices, _ in self.cuts):
            return f"cuts need a choice for each of the {len(instance.layers)} layers"
        return None

    def scope(self, instance: CodesignInstance) -> str | None:
        """A switch is not among the topologies."""
        return None if self.network == "any" else "switch"

    def build(self, block: pyo.Block, instance: CodesignInstance) -> None:
        """Fill ``block`` with strategies and what they need of any topology."""
        add_strategies(block, instance, time_unit_s(instance), self.collapse)
        demand = demand_of(tables_of(instance))
        weights = demand.weights
        block.congestion = pyo.Var(bounds=(0, None), doc="bytes on the busiest link")
        block.FIGURES = pyo.RangeSet(0, len(weights) - 1, doc="sets and patterns")
        block.share = pyo.Var(block.FIGURES, bounds=(0, None), doc="bytes, times what the busiest server has of one")
        sets = len(tables_of(instance).groups_of)

        @block.Constraint(block.FIGURES, doc="bytes follow from the strategies")
        def shares_follow(b: Any, i: int) -> Any:
            port = (b.reduced[i] if i < sets else b.moved[i - sets]).expr
            terms = zip(port.linear_coefs, port.linear_vars, strict=True) if isinstance(port, LinearExpression) else ()
            return linear([*((weights[i] * c, x) for c, x in terms), (-1.0, b.share[i])]) == 0

        if self.network == "switch":
            _add_rows(block, "server", demand.server_rows / weights / self.links_per_port)
            if self.racks:
                ports = demand.degree * self.links_per_port
                _add_rows(block, "rack", heaviest_rows(self._crossing(instance) / weights / ports))
        else:
            _add_rows(block, "server", demand.server_rows / weights)
            _add_volume(block, demand, weights)
            for i in np.flatnonzero(demand.unreachable).tolist():
                block.share[i].setub(0)
            if not instance.host_forwarding:
                _add_rows(block, "pair", heaviest_rows(_direct(instance) / weights))
        if self.cuts:
            unit = time_unit_s(instance) * instance.link_bandwidth_bytes_per_s
            add_cuts(block, instance, self.cuts, unit, weights)
        add_iteration_time(block, instance, block.congestion)

    def _crossing(self, instance: CodesignInstance) -> Floats:
        """(2 racks, figures) bytes that leave and enter each rack, per server's share of the uplinks."""
        tables = tables_of(instance)
        rows = []
        for rack in self.racks:
            inside = np.isin(np.arange(instance.servers), rack)
            rings = np.zeros(len(tables.groups_of))
            for place, groups in enumerate(tables.groups_of):
                for group in groups:
                    members = tables.groups[group]
                    if 0 < inside[list(members)].sum() < len(members):
                        rings[place] += ring_factor(len(members))
            units = [pattern.unit for pattern in tables.patterns]
            out = [float((unit[inside].sum(axis=0) * ~inside).sum()) for unit in units]
            back = [float((unit[~inside].sum(axis=0) * inside).sum()) for unit in units]
            uplinks = len(rack) / self.oversubscription
            rows += [np.concatenate([rings, each]) / uplinks for each in (out, back)]
        return np.array(rows)


def _add_rows(block: pyo.Block, name: str, rows: Floats) -> None:
    """Congestion is at least each row times the figures."""

    def rule(b: Any, place: int) -> Any:
        terms = [(value, b.share[i]) for i, value in enumerate(rows[place].tolist())]
        return linear([*terms, (-1.0, b.congestion)]) <= 0

    index = pyo.RangeSet(0, len(rows) - 1, doc=f"{name} rows")
    block.add_component(f"{name.upper()}_ROWS", index)
    block.add_component(
        f"{name}_is_served", pyo.Constraint(index, rule=rule, doc=f"no {name} has more than links carry")
    )


def _add_volume(block: pyo.Block, demand: Demand, weights: Floats) -> None:
    surplus = (demand.received - demand.sent) / weights
    uneven = np.flatnonzero((surplus > FEASIBILITY_TOL).any(axis=1)).tolist()
    block.UNEVEN = pyo.Set(initialize=uneven, doc="servers that may receive more than they send")
    block.excess = pyo.Var(block.UNEVEN, bounds=(0, None), doc="what a server receives beyond what it sends")

    @block.Constraint(block.UNEVEN, doc="excess is received and not sent")
    def excess_is_received(b: Any, server: int) -> Any:
        terms = [(value, b.share[i]) for i, value in enumerate(surplus[server].tolist())]
        return linear([*terms, (-1.0, b.excess[server])]) <= 0

    volume = demand.hop_bytes / weights / demand.capacity
    terms = [(value, block.share[i]) for i, value in enumerate(volume.tolist())]
    excess = [(1 / demand.capacity, block.excess[server]) for server in uneven]
    block.volume_is_carried = pyo.Constraint(
        expr=linear([*terms, *excess, (-1.0, block.congestion)]) <= 0, doc="links carry bytes times hops"
    )


def _direct(instance: CodesignInstance) -> Floats:
    """(rows, figures) bytes on a link if nobody forwards: of every pair, and of a ring where links are not parallel."""
    tables, d = tables_of(instance), instance.degree
    sets = len(tables.groups_of)
    links = d if instance.parallel_links else 1
    entries = np.zeros((0, 0))
    units = [pattern.unit for pattern in tables.patterns]
    if units:
        total = sum(units[1:], start=units[0]).tocoo()
        entries = np.column_stack([np.asarray(unit[total.row, total.col]).ravel() for unit in units]) / links
    pairs = np.hstack([np.zeros((len(entries), sets)), entries]) if units else np.zeros((0, sets))
    rings = np.zeros((sets, sets + len(units)))
    if not instance.parallel_links:
        for place, groups in enumerate(tables.groups_of):
            sizes = [len(tables.groups[group]) for group in groups]
            rings[place, place] = max((ring_factor(k) / min(d, k - 1) for k in sizes), default=0.0)
    return np.concatenate([pairs, rings])
