"""Rates of jobs that share links equally and may have several messages on a link, as an integer program."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, ClassVar, Literal

import pyomo.environ as pyo

from ddlopt.models.aggregation.graph.bounds import most_rates
from ddlopt.models.aggregation.graph.formulations.graph_aggregation import (
    JOB_ROWS,
    LIMIT_ROWS,
    GraphAggregation,
    add_messages,
    job_rows,
    least_in_sum,
    limit_rows,
    messages_on,
)
from ddlopt.models.aggregation.graph.formulations.rate_levels import RATE_ROWS, Shared, share_rows, switch_shares
from ddlopt.models.aggregation.graph.instance import AggregationTrees, GraphInstance
from ddlopt.models.aggregation.graph.network import Arc, JobNetwork, bandwidth, job_network, rate_unit
from ddlopt.models.contracts import Instance
from ddlopt.models.covering import FormulationBase
from ddlopt.models.linear import Rows, Sum, joined, notable, term, total, weighted
from ddlopt.models.tolerances import FEASIBILITY_TOL

_LAYERS = GraphAggregation()
"""Its messages are those here."""


@dataclass(frozen=True)
class RateMessages(FormulationBase):
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
        Sum of rates in units of :func:`~ddlopt.models.aggregation.graph.network.rate_unit`, to be maximised.

    References
    ----------
    G. McCormick, "Computability of global solutions to factorable nonconvex programs: Part I", Mathematical Programming
    10, 1976, for products of a rate and a binary.
    """

    flows: bool = True

    covers: ClassVar[type[Instance]] = GraphInstance
    sense: ClassVar[Literal["minimize", "maximize"]] = "maximize"
    outer: ClassVar[bool] = True

    def refuses(self, instance: Any) -> str | None:
        """Goals, and jobs whose messages must merge."""
        if instance.goal != "rates":
            return f"it is for rates, and the goal is {instance.goal}"
        return "merging is set; rate-levels is for it" if instance.merging else None

    def build(self, block: pyo.Block, instance: GraphInstance) -> None:
        """Fill ``block``."""
        networks = [job_network(instance, job) for job in instance.jobs]
        levels = job_levels(instance, networks)
        unit = rate_unit(instance)
        add_messages(block, networks)
        block.uses = pyo.Var(list(block.sums), domain=pyo.Binary, doc="1 if the job has messages on the arc")
        pairs = [(j, number) for j, own in enumerate(levels) for number in range(len(own))]
        block.level = pyo.Var(pairs, domain=pyo.Binary, doc="1 if the job has this rate")
        rates = [[(level, block.level[j, number]) for number, level in enumerate(own)] for j, own in enumerate(levels)]
        on = messages_on(block, networks)
        rows = Rows()
        for j, network in enumerate(networks):
            rows["jobs_have_a_rate"][j] = total(variable for _, variable in rates[j]) == 1
            job_rows(rows, block, instance, j, network)
            _use_rows(rows, block, instance, j, network)
        limit_rows(rows, block, instance, networks, on)
        shared = [*_arc_shares(block, instance, networks, on), *switch_shares(block, instance, networks)]
        share_rows(rows, shared, rates)
        in_units = [weighted((level / unit, variable) for level, variable in own) for own in rates]
        if self.flows:
            block.scaled = pyo.Block()
            add_messages(block.scaled, networks, scaled=True)
            # Rates that are nothing beside others count as such in rows: less flows, which makes them weaker.
            flows = [notable(rate) for rate in in_units]
            _scaled_rows(rows, block, instance, networks, flows)
            _capacity_rows(rows, block, instance, networks, flows, unit)
        rows.add_to(block, **JOB_ROWS, **RATE_ROWS, **LIMIT_ROWS, **_ROWS)
        block.objective = pyo.Expression(expr=joined(in_units).expression)

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
        return value * rate_unit(instance)


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


_ROWS = {
    "sums_take_used_arcs": "an arc with a sum is used",
    "raw_takes_used_arcs": "an arc with a raw message is used",
    "parts_take_used_arcs": "an arc where a part of a group travels is used",
    "groups_have_a_way": "an arc that is used leads away from each group",
    "scaled_is_within_rate": "an aggregation times the rate is at most the rate",
    "scaled_is_none_or_within": "an aggregation times the rate is none, or at most the largest rate",
    "scaled_is_the_rate": "an aggregation times the rate is the rate where there is one",
    "links_are_not_exceeded": "messages times rates are within the bandwidth of a link",
    "switches_are_not_exceeded": "aggregations times rates are within the rate of a switch",
}


def _use_rows(rows: Rows, block: pyo.Block, instance: GraphInstance, j: int, network: JobNetwork) -> None:
    """An arc with a message is used, and one leads away from each group."""
    most = _most_sums(instance, network)
    for arc in network.arcs:
        uses = term(block.uses[j, *arc])
        rows["sums_take_used_arcs"][j, *arc] = term(block.sums[j, *arc]) <= most * uses
        for g, number in network.groups.items():
            rows["raw_takes_used_arcs"][j, g, *arc] = term(block.raw[j, g, *arc]) <= number * uses
            rows["parts_take_used_arcs"][j, g, *arc] = term(block.part[j, g, *arc]) <= uses
    for g in network.groups:
        rows["groups_have_a_way"][j, g] = total(block.uses[j, *arc] for arc in network.arcs if arc[0] == g) >= 1


def _arc_shares(
    block: pyo.Block, instance: GraphInstance, networks: Sequence[JobNetwork], on: Sequence[dict[Arc, Sum]]
) -> list[Shared]:
    users: dict[Arc, dict[int, tuple[Any, int]]] = {}
    load: dict[Arc, list[Sum]] = {}
    always: dict[Arc, dict[int, int]] = {}
    for j, network in enumerate(networks):
        for arc in network.arcs:
            users.setdefault(arc, {})[j] = (block.uses[j, *arc], _most_messages(instance, network))
            load.setdefault(arc, []).append(on[j][arc])
        for arc in network.sent:
            always.setdefault(arc, {})[j] = 1
    return [
        Shared(bandwidth(instance, arc), users.get(arc, {}), joined(load.get(arc, [])), always.get(arc, {}))
        for arc in dict.fromkeys((*users, *always))
    ]


def _scaled_rows(
    rows: Rows, block: pyo.Block, instance: GraphInstance, networks: Sequence[JobNetwork], rates: Sequence[Sum]
) -> None:
    """Messages times the rate of their job; they are tied to the messages by the switches that aggregate."""
    of_messages = Rows()
    for j, network in enumerate(networks):
        job_rows(of_messages, block.scaled, instance, j, network, rates[j])
        most = max(rates[j].coefficients, default=0.0)
        for v in network.able:
            scaled, aggregates = term(block.scaled.aggregates[j, v]), term(block.aggregates[j, v])
            rows["scaled_is_within_rate"][j, v] = scaled <= rates[j]
            rows["scaled_is_none_or_within"][j, v] = scaled <= most * aggregates
            rows["scaled_is_the_rate"][j, v] = scaled - rates[j] - most * aggregates >= -most
    of_messages.add_to(block.scaled, **JOB_ROWS)


def _capacity_rows(
    rows: Rows,
    block: pyo.Block,
    instance: GraphInstance,
    networks: Sequence[JobNetwork],
    rates: Sequence[Sum],
    unit: float,
) -> None:
    """No arc and no switch is asked for more than its capacity."""
    loads: dict[Arc, list[Sum]] = {}
    for j, (network, on) in enumerate(zip(networks, messages_on(block.scaled, networks), strict=True)):
        for arc, messages in on.items():
            loads.setdefault(arc, []).append(messages)
        for arc in network.sent:
            loads.setdefault(arc, []).append(rates[j])
    for arc, sums in loads.items():
        rows["links_are_not_exceeded"][arc] = joined(sums) <= bandwidth(instance, arc) / unit
    for v, node in enumerate(instance.nodes):
        users = [block.scaled.aggregates[j, v] for j, network in enumerate(networks) if v in network.able]
        if node.aggregation_bytes_per_s is not None and users:
            rows["switches_are_not_exceeded"][v] = total(users) <= node.aggregation_bytes_per_s / unit
