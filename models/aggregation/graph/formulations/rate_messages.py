"""Rates of jobs that share links equally and may have several messages on a link, as an integer program."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, ClassVar, Literal

import pyomo.environ as pyo

from ddlopt.models.aggregation.graph.bounds import most_rates
from ddlopt.models.aggregation.graph.formulations.graph_aggregation import (
    GraphAggregation,
    Row,
    Terms,
    add_messages,
    add_rows,
    job_rows,
    least_in_sum,
    limit_rows,
    messages_on,
)
from ddlopt.models.aggregation.graph.formulations.rate_levels import Shared, share_rows, switch_shares
from ddlopt.models.aggregation.graph.instance import AggregationTrees, GraphInstance
from ddlopt.models.aggregation.graph.network import Arc, JobNetwork, bandwidth, job_network, linear
from ddlopt.models.tolerances import FEASIBILITY_TOL

_LAYERS = GraphAggregation()
"""Its messages are those here."""


@dataclass(frozen=True)
class RateMessages:
    r"""The two layers of messages, and of each job the level of its rate.

    Messages are those of :class:`~ddlopt.models.aggregation.graph.formulations.graph_aggregation.GraphAggregation`,
    :math:`m_{ja}` of job j on arc a, at most W raw ones and :math:`\lfloor W / 2 \rfloor` sums of its W workers;
    :math:`x_{ja} = 1` if there are any. A rate is a capacity over a number of messages (of jobs in a switch), and not
    more than :func:`~ddlopt.models.aggregation.graph.bounds.most_rates` allows: levels :math:`L_{j\ell}`, of which
    :math:`Y_{j\ell} = 1` chooses one:

    .. math::
        \max\ & \textstyle\sum_j \lambda_j, \qquad \lambda_j = \sum_\ell L_{j\ell} Y_{j\ell}, \qquad
            \sum_\ell Y_{j\ell} = 1 \\
        & y_{ja} \le \lfloor W / 2 \rfloor x_{ja}, \qquad h_{jga} \le n_g x_{ja}, \qquad w_{jga} \le x_{ja} \\
        & \textstyle\sum_k m_{ka} \le \sum_\ell \lfloor c_a / L_{j\ell} \rfloor Y_{j\ell} + n_{ja} (1 - x_{ja}),

    where :math:`n_{ja}` is what others can send there less what any level of j allows; the last row with a for switches
    with an aggregation rate.

    With ``flows`` there is a second copy of the two layers, each variable times the rate of its job:
    :math:`\lambda_j` stands where one stood in the balance of a group, and

    .. math::
        \textstyle\sum_j \tilde m_{ja} \le c_a, \qquad \sum_j \tilde a_{jv} \le r_v, \qquad
        \tilde a_{jv} \le \min(\lambda_j,\ a_{jv} L_{j1}), \qquad
        \tilde a_{jv} \ge \lambda_j - (1 - a_{jv}) L_{j1},

    as jobs with equal shares ask for no more than there is. Bounds of :math:`\tilde h, \tilde y, \tilde w` by the
    messages themselves hold, too, but raised no relaxation that we measured, and some then took sixty times as long.
    The formulation is ours.

    Parameters
    ----------
    flows : bool

    Ports
    -----
    ``aggregates[j, v]``
        a; 1 if switch v aggregates for job j.
    ``raw[j, g, u, v]``
        h; raw messages of the group at node g, on the arc from u to v.
    ``sums[j, u, v]``
        y.
    ``uses[j, u, v]``
        x; 1 if job j has messages from u to v.
    ``level[j, l]``
        Y; levels of all rates that the job can have, in falling order.
    ``objective``
        Sum of rates in units of the largest bandwidth, to be maximised.

    References
    ----------
    G. McCormick, "Computability of global solutions to factorable nonconvex programs: Part I", Mathematical Programming
    10, 1976, for products of a rate and a binary.
    """

    flows: bool = True

    sense: ClassVar[Literal["minimize", "maximize"]] = "maximize"
    outer: ClassVar[bool] = True

    def refuses(self, instance: Any) -> str | None:
        """Other problems and goals, and jobs whose messages must merge."""
        if not isinstance(instance, GraphInstance):
            return f"it answers a {GraphInstance.kind}, and this is a {instance.kind}"
        if instance.goal != "rates":
            return f"it is for rates, and the goal is {instance.goal}"
        return "merging is set; rate-levels is for it" if instance.merging else None

    def scope(self, instance: GraphInstance) -> str | None:
        """All trees."""
        return None

    def build(self, block: pyo.Block, instance: GraphInstance) -> None:
        """Fill ``block``."""
        networks = [job_network(instance, job) for job in instance.jobs]
        levels = job_levels(instance, networks)
        unit = _unit(instance)
        add_messages(block, networks)
        block.uses = pyo.Var(list(block.sums), domain=pyo.Binary, doc="1 if the job has messages on the arc")
        pairs = [(j, number) for j, own in enumerate(levels) for number in range(len(own))]
        block.level = pyo.Var(pairs, domain=pyo.Binary, doc="1 if the job has this rate")
        rates: list[Terms] = [
            [(level, block.level[j, number]) for number, level in enumerate(own)] for j, own in enumerate(levels)
        ]
        on = messages_on(block, networks)
        rows: list[Row] = [(1.0, [(1.0, each) for _, each in own], 1.0) for own in rates]
        for j, network in enumerate(networks):
            rows += job_rows(block, instance, j, network) + _use_rows(block, instance, j, network)
        rows += limit_rows(block, instance, networks, on)
        shared = [*_arc_shares(block, instance, networks, on), *switch_shares(block, instance, networks)]
        rows += share_rows(shared, rates)
        scaled: list[Terms] = [[(level / unit, each) for level, each in own] for own in rates]
        if self.flows:
            block.scaled = pyo.Block()
            add_messages(block.scaled, networks, scaled=True)
            rows += _scaled_rows(block, instance, networks, scaled)
            rows += _room_rows(block, instance, networks, scaled, unit)
        add_rows(block, "jobs_share", rows, "messages, levels, shares, limits")
        block.objective = pyo.Expression(expr=linear([term for own in scaled for term in own]))

    def start(self, block: pyo.Block, instance: GraphInstance, solution: AggregationTrees) -> None:
        """Set all messages and which switches aggregate."""
        _LAYERS.start(block, instance, solution)
        used = [{arc for route in tree for arc in pairwise(route)} for tree in solution.trees]
        for (j, one, other), variable in block.uses.items():
            variable.set_value(int((one, other) in used[j]))

    def read(self, block: pyo.Block, instance: GraphInstance) -> AggregationTrees:
        """The routes.

        Raises
        ------
        SolverError
            If messages do not reach the server.
        """
        return _LAYERS.read(block, instance)

    def objective_value(self, instance: GraphInstance, value: float) -> float:
        """Bytes per second."""
        return value * _unit(instance)


def _unit(instance: GraphInstance) -> float:
    """Bytes per second in which the model counts."""
    return max(link.bandwidth_bytes_per_s for link in instance.links)


def _most_sums(instance: GraphInstance, network: JobNetwork) -> int:
    """Sums of a job on an arc."""
    return sum(network.groups.values()) // least_in_sum(instance, network)


def _most_messages(instance: GraphInstance, network: JobNetwork) -> int:
    """Messages of a job on an arc."""
    return sum(network.groups.values()) + _most_sums(instance, network)


def job_levels(instance: GraphInstance, networks: Sequence[JobNetwork]) -> list[tuple[float, ...]]:
    """Rates that each job can have, the largest first: capacities over numbers of messages that can be there."""
    most: dict[Arc, int] = {}
    for network in networks:
        for arc in network.arcs:
            most[arc] = most.get(arc, 0) + _most_messages(instance, network)
        for arc in network.sent:
            most[arc] = most.get(arc, 0) + 1
    found = []
    for network, limit in zip(networks, most_rates(instance), strict=True):
        numbers: dict[float, int] = {}
        for arc in (*network.arcs, *network.sent):
            capacity = bandwidth(instance, arc)
            numbers[capacity] = max(numbers.get(capacity, 0), most[arc])
        for v in network.able:
            rate = instance.nodes[v].aggregation_bytes_per_s
            if rate is not None:
                numbers[rate] = max(numbers.get(rate, 0), sum(v in other.able for other in networks))
        rates = {capacity / number for capacity, last in numbers.items() for number in range(1, last + 1)}
        found.append(tuple(sorted((rate for rate in rates if rate <= limit * (1 + FEASIBILITY_TOL)), reverse=True)))
    return found


def _use_rows(block: pyo.Block, instance: GraphInstance, j: int, network: JobNetwork) -> list[Row]:
    """An arc with a message is used, and one leads away from each group."""
    rows: list[Row] = []
    most = float(_most_sums(instance, network))
    for arc in network.arcs:
        uses = block.uses[j, *arc]
        rows.append((None, [(1.0, block.sums[j, *arc]), (-most, uses)], 0.0))
        for g, number in network.groups.items():
            rows.append((None, [(1.0, block.raw[j, g, *arc]), (-float(number), uses)], 0.0))
            rows.append((None, [(1.0, block.part[j, g, *arc]), (-1.0, uses)], 0.0))
    for g in network.groups:
        rows.append((1.0, [(1.0, block.uses[j, *arc]) for arc in network.arcs if arc[0] == g], None))
    return rows


def _arc_shares(
    block: pyo.Block, instance: GraphInstance, networks: Sequence[JobNetwork], on: Sequence[dict[Arc, Terms]]
) -> list[Shared]:
    users: dict[Arc, dict[int, tuple[Any, int]]] = {}
    load: dict[Arc, Terms] = {}
    always: dict[Arc, dict[int, int]] = {}
    for j, network in enumerate(networks):
        for arc in network.arcs:
            users.setdefault(arc, {})[j] = (block.uses[j, *arc], _most_messages(instance, network))
            load.setdefault(arc, []).extend(on[j][arc])
        for arc in network.sent:
            always.setdefault(arc, {})[j] = 1
    return [
        Shared(bandwidth(instance, arc), users.get(arc, {}), load.get(arc, []), always.get(arc, {}))
        for arc in dict.fromkeys((*users, *always))
    ]


def _scaled_rows(
    block: pyo.Block, instance: GraphInstance, networks: Sequence[JobNetwork], rates: Sequence[Terms]
) -> list[Row]:
    """Messages times the rate of their job; they are tied to the messages by the switches that aggregate."""
    rows: list[Row] = []
    for j, network in enumerate(networks):
        rows += job_rows(block.scaled, instance, j, network, rates[j])
        most = max(value for value, _ in rates[j])
        minus = [(-value, variable) for value, variable in rates[j]]
        for v in network.able:
            scaled, whole = (1.0, block.scaled.aggregates[j, v]), (-most, block.aggregates[j, v])
            rows += [(None, [scaled, *minus], 0.0), (None, [scaled, whole], 0.0)]
            rows.append((-most, [scaled, *minus, whole], None))
    return rows


def _room_rows(
    block: pyo.Block, instance: GraphInstance, networks: Sequence[JobNetwork], rates: Sequence[Terms], unit: float
) -> list[Row]:
    """No arc and no switch is asked for more than its capacity."""
    loads: dict[Arc, Terms] = {}
    entering: dict[int, Terms] = {}
    for j, (network, on) in enumerate(zip(networks, messages_on(block.scaled, networks), strict=True)):
        for arc, terms in on.items():
            loads.setdefault(arc, []).extend(terms)
        for arc in network.sent:
            loads.setdefault(arc, []).extend(rates[j])
        for v in network.able:
            entering.setdefault(v, []).append((1.0, block.scaled.aggregates[j, v]))
    rows: list[Row] = [(None, terms, bandwidth(instance, arc) / unit) for arc, terms in loads.items()]
    for v, terms in entering.items():
        rate = instance.nodes[v].aggregation_bytes_per_s
        if rate is not None:
            rows.append((None, terms, rate / unit))
    return rows
