"""Aggregation in a network as an integer program with two layers of messages."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, ClassVar, Literal

import pyomo.environ as pyo

from ddlopt.models.aggregation.graph.instance import AggregationTrees, GraphInstance
from ddlopt.models.aggregation.graph.network import (
    Arc,
    JobNetwork,
    bandwidth,
    job_network,
    routes_of,
    time_unit_s,
)
from ddlopt.models.contracts import Instance
from ddlopt.models.covering import FormulationBase
from ddlopt.models.linear import Rows, Sum, covers, joined, term, total, weighted


@dataclass(frozen=True)
class GraphAggregation(FormulationBase):
    r"""Raw messages to the first switch that aggregates them, sums from there on.

    Workers of a job whose only link leads to the same switch are a *group* g of :math:`n_g` messages at that switch. Of
    every job, with its index left out, :math:`h_{ga}` raw messages of a group and :math:`y_a` sums are on arc a,
    :math:`a_v = 1` if switch v aggregates, :math:`z_{gv}` raw messages and :math:`r_v` sums end there, and
    :math:`w_{ga}` is the part of the group that travels in sums:

    .. math::
        & h_g(\delta^+(v)) - h_g(\delta^-(v)) = n_g [g = v] - z_{gv}, \qquad z_{gv} \le n_g a_v \\
        & y(\delta^+(v)) - y(\delta^-(v)) = a_v - r_v, \qquad r_v \le \lfloor |W| / 2 \rfloor a_v, \qquad
          \textstyle\sum_g z_{gv} + r_v \ge 2 a_v \\
        & w_g(\delta^+(v)) - w_g(\delta^-(v)) = z_{gv} / n_g, \qquad
          w_{ga} \le y_a, \qquad 2 y_a \le \textstyle\sum_g n_g w_{ga}

    at every node v but the server. The messages on an arc are :math:`m_a = \sum_g h_{ga} + y_a`. The rows of w send
    every gradient to the server (for each group a flow, as in multi-commodity models of Steiner trees); those with 2
    say that a sum has two gradients in it, which also keeps sums from running in circles. A switch that does not
    forward may aggregate a single message. Slots, the number of aggregators, connections and merging are rows in a, h
    and y.

    The two layers and their rows are ours; published programs have one layer, ``graph-plain``.

    Ports
    -----
    ``aggregates[j, v]``
        a; 1 if switch v aggregates for job j.
    ``raw[j, g, u, v]``
        h; raw messages of the group at node g, on the arc from u to v.
    ``sums[j, u, v]``
        y.
    ``congestion`` : goal congestion
        The largest time in units of :func:`~ddlopt.models.aggregation.graph.network.time_unit_s`.
    ``objective``
        Utilization or congestion in that unit, to be minimised.

    References
    ----------
    R. Wong, "A dual ascent approach for Steiner tree problems on a directed graph", Mathematical Programming 28, 1984,
    for flows by terminal.
    """

    covers: ClassVar[type[Instance]] = GraphInstance
    sense: ClassVar[Literal["minimize", "maximize"]] = "minimize"
    # Incumbents may have messages that run in loops, which the solution read leaves out.
    outer: ClassVar[bool] = True

    def refuses(self, instance: Any) -> str | None:
        """Rates."""
        return "it is for utilization and congestion, and the goal is rates" if instance.goal == "rates" else None

    def build(self, block: pyo.Block, instance: GraphInstance) -> None:
        """Fill ``block``."""
        networks = [job_network(instance, job) for job in instance.jobs]
        add_messages(block, networks)
        rows = Rows()
        for j, network in enumerate(networks):
            job_rows(rows, block, instance, j, network)
        on = messages_on(block, networks)
        limit_rows(rows, block, instance, networks, on)
        rows.add_to(block, **JOB_ROWS, **LIMIT_ROWS)
        add_goal(block, instance, networks, on, ended_in(block, networks))

    def start(self, block: pyo.Block, instance: GraphInstance, solution: AggregationTrees) -> None:
        """Set all messages and which switches aggregate."""
        networks = [job_network(instance, job) for job in instance.jobs]
        for component in (block.raw, block.sums, block.raw_ends, block.sums_end, block.aggregates):
            for variable in component.values():
                variable.set_value(0)
        for j, (network, tree) in enumerate(zip(networks, solution.trees, strict=True)):
            sent = {arc[0]: arc[1] for arc in network.sent}
            ends = {route[-1] for route in tree} - {network.job.server}
            for v in ends:
                block.aggregates[j, v].set_value(1)
            for route in tree:
                first = route[0]
                if first in ends:
                    _start_sum(block, j, network, route)
                    continue
                rest = route[1:] if first in sent else route
                for arc in pairwise(rest):
                    _increase(block.raw[j, rest[0], *arc])
                if rest[-1] != network.job.server:
                    _increase(block.raw_ends[j, rest[0], rest[-1]])

    def read(self, block: pyo.Block, instance: GraphInstance) -> AggregationTrees:
        """The routes.

        Raises
        ------
        SolverError
            If messages do not reach the server.
        """
        trees = []
        networks = [job_network(instance, job) for job in instance.jobs]
        on, ended = messages_on(block, networks), ended_in(block, networks)
        for j, network in enumerate(networks):
            messages = dict.fromkeys(network.sent, 1)
            for arc in network.arcs:
                number = round(sum(pyo.value(variable) for variable in on[j][arc].variables))
                if number:
                    messages[arc] = number
            ends = {v: round(pyo.value(messages_ended.expression)) for v, messages_ended in ended[j].items()}
            trees.append(routes_of(network.job, messages, {v: number for v, number in ends.items() if number > 0}))
        return AggregationTrees(instance=instance.name, trees=tuple(trees))

    def objective_value(self, instance: GraphInstance, value: float) -> float:
        """Seconds."""
        return value * time_unit_s(instance)


def _increase(variable: Any) -> None:
    variable.set_value(variable.value + 1)


def _start_sum(block: pyo.Block, j: int, network: JobNetwork, route: tuple[int, ...]) -> None:
    for arc in pairwise(route):
        _increase(block.sums[j, *arc])
    if route[-1] != network.job.server:
        _increase(block.sums_end[j, route[-1]])
    if route[0] in network.job.workers:
        _increase(block.raw_ends[j, route[0], route[0]])


def add_messages(block: pyo.Block, networks: Sequence[JobNetwork], scaled: bool = False) -> None:
    """Variables of the two layers and of which switches aggregate; ``scaled``: by rates, so none is an integer."""
    some = pyo.NonNegativeReals if scaled else pyo.NonNegativeIntegers
    one = pyo.NonNegativeReals if scaled else pyo.Binary
    able = [(j, v) for j, network in enumerate(networks) for v in network.able]
    ends = [(j, g, v) for j, network in enumerate(networks) for g in network.groups for v in network.able]
    arcs = [(j, *arc) for j, network in enumerate(networks) for arc in network.arcs]
    flows = [(j, g, *arc) for j, network in enumerate(networks) for g in network.groups for arc in network.arcs]
    block.aggregates = pyo.Var(able, domain=one, doc="1 if the switch aggregates for the job")
    block.raw = pyo.Var(flows, domain=some, doc="raw messages of a group on an arc")
    block.sums = pyo.Var(arcs, domain=some, doc="sums on an arc")
    block.raw_ends = pyo.Var(ends, domain=pyo.NonNegativeReals, doc="raw messages of a group that end in a switch")
    block.sums_end = pyo.Var(able, domain=pyo.NonNegativeReals, doc="sums that end in a switch")
    block.part = pyo.Var(flows, domain=pyo.NonNegativeReals, doc="part of a group that travels in sums on an arc")


JOB_ROWS = {
    "raw_is_conserved": "raw messages of a group are passed on, or end in a switch that aggregates",
    "raw_ends_where_aggregated": "raw messages end where their job is aggregated",
    "sums_are_conserved": "sums are passed on, begin in a switch that aggregates, or end there",
    "sums_end_where_aggregated": "sums end where their job is aggregated, each with two gradients",
    "sums_end_where_they_arrive": "no more sums end than arrive",
    "some_messages_end": "a switch that aggregates has something to add up",
    "own_message_ends": "a worker that aggregates adds its own gradient",
    "parts_are_conserved": "what ends in a switch goes on in sums",
    "parts_are_in_sums": "gradients that were added up travel in sums",
    "sums_have_gradients": "a sum has two gradients, or one where workers may aggregate",
    "only_own_raw_leaves": "a node that does not forward sends nobody else's messages",
    "one_sum_leaves": "a node that does not forward sends one sum",
}
"""What rows of messages say, by name."""

LIMIT_ROWS = {
    "slots_suffice": "jobs fit into the slots of a switch",
    "aggregators_are_limited": "a limited number of switches aggregates for jobs",
    "connections_are_limited": "a server has a limited number of connections for a job",
    "messages_merge": "one message of a job leaves a node",
}
"""What rows of limits say, by name."""


def job_rows(
    rows: Rows, block: pyo.Block, instance: GraphInstance, j: int, network: JobNetwork, rate: Sum | None = None
) -> None:
    """Messages of a job from its groups to its server; with ``rate``, messages times it.

    Every row is homogeneous but those where groups send, where a rate stands for one.
    """
    h, y, w, a = block.raw, block.sums, block.part, block.aggregates
    out: dict[int, list[Arc]] = {v: [] for v in network.nodes}
    into: dict[int, list[Arc]] = {v: [] for v in network.nodes}
    for arc in network.arcs:
        out[arc[0]].append(arc)
        if arc[1] in into:
            into[arc[1]].append(arc)
    able = set(network.able)
    for v in network.nodes:
        leaving, entering = total(y[j, *arc] for arc in out[v]), total(y[j, *arc] for arc in into[v])
        if v in able:
            aggregates, ends = term(a[j, v]), term(block.sums_end[j, v])
            rows["sums_are_conserved"][j, v] = leaving - entering == aggregates - ends
            rows["sums_end_where_aggregated"][j, v] = ends <= (len(network.job.workers) // 2) * aggregates
            rows["sums_end_where_they_arrive"][j, v] = ends <= entering
            all_ends = total(block.raw_ends[j, g, v] for g in network.groups) + ends
            rows["some_messages_end"][j, v] = all_ends >= (2 if instance.nodes[v].forwards else 1) * aggregates
            if v in network.job.workers:
                rows["own_message_ends"][j, v] = term(block.raw_ends[j, v, v]) >= aggregates
        else:
            rows["sums_are_conserved"][j, v] = leaving - entering == 0
        for g, number in network.groups.items():
            sent = (number if rate is None else number * rate) if g == v else 0
            raw = total(h[j, g, *arc] for arc in out[v]) - total(h[j, g, *arc] for arc in into[v])
            part = total(w[j, g, *arc] for arc in out[v]) - total(w[j, g, *arc] for arc in into[v])
            if v in able:
                ends = term(block.raw_ends[j, g, v])
                rows["raw_is_conserved"][j, g, v] = raw + ends == sent
                rows["raw_ends_where_aggregated"][j, g, v] = ends <= number * aggregates
                rows["parts_are_conserved"][j, g, v] = part == (1 / number) * ends
            else:
                rows["raw_is_conserved"][j, g, v] = raw == sent
                rows["parts_are_conserved"][j, g, v] = part == 0
        if not instance.nodes[v].forwards:
            own = v if v in network.job.workers else None
            others = total(h[j, g, *arc] for arc in out[v] for g in network.groups if g != own)
            rows["only_own_raw_leaves"][j, v] = others <= 0
            if v in able:
                rows["one_sum_leaves"][j, v] = leaving <= aggregates
    least = least_in_sum(instance, network)
    for arc in network.arcs:
        sums, parts = term(y[j, *arc]), {g: w[j, g, *arc] for g in network.groups}
        for g, part in parts.items():
            rows["parts_are_in_sums"][j, g, *arc] = sums >= term(part)
        gradients = weighted((float(number), parts[g]) for g, number in network.groups.items())
        rows["sums_have_gradients"][j, *arc] = gradients >= least * sums


def least_in_sum(instance: GraphInstance, network: JobNetwork) -> int:
    """Gradients that any sum has in it: a switch that does not forward may send its own."""
    return 2 if all(instance.nodes[v].forwards for v in network.able) else 1


def messages_on(block: pyo.Block, networks: Sequence[JobNetwork]) -> list[dict[Arc, Sum]]:
    """Of each job the messages on each arc that is decided on."""
    return [
        {arc: total([block.sums[j, *arc], *(block.raw[j, g, *arc] for g in network.groups)]) for arc in network.arcs}
        for j, network in enumerate(networks)
    ]


def ended_in(block: pyo.Block, networks: Sequence[JobNetwork]) -> list[dict[int, Sum]]:
    """Of each job the messages that end in each switch; the own gradient of a worker that aggregates is none."""
    found = []
    for j, network in enumerate(networks):
        ends: dict[int, Sum] = {}
        for v in network.able:
            ends[v] = total([block.sums_end[j, v], *(block.raw_ends[j, g, v] for g in network.groups)])
            if v in network.job.workers:
                ends[v] = ends[v] - term(block.aggregates[j, v])
        found.append(ends)
    return found


def limit_rows(
    rows: Rows, block: pyo.Block, instance: GraphInstance, networks: Sequence[JobNetwork], on: list[dict[Arc, Sum]]
) -> None:
    """:data:`LIMIT_ROWS`; ``block.aggregates`` is as in :class:`GraphAggregation`."""
    a = block.aggregates
    for v, node in enumerate(instance.nodes):
        slots = [(float(each.job.slots), a[j, v]) for j, each in enumerate(networks) if v in each.able]
        if slots and sum(value for value, _ in slots) > node.slots:
            rows["slots_suffice"][v] = weighted(slots) <= node.slots
    if instance.aggregators is not None:
        rows["aggregators_are_limited"][0] = total(a.values()) <= instance.aggregators
    for j, network in enumerate(networks):
        if instance.connections is not None:
            arriving = joined(messages for arc, messages in on[j].items() if arc[1] == network.job.server)
            rows["connections_are_limited"][j] = arriving + network.direct <= instance.connections
        if instance.merging:
            for v in network.nodes:
                leaving = joined(messages for arc, messages in on[j].items() if arc[0] == v)
                rows["messages_merge"][j, v] = leaving <= 1


def add_goal(
    block: pyo.Block,
    instance: GraphInstance,
    networks: Sequence[JobNetwork],
    on: list[dict[Arc, Sum]],
    ended: list[dict[int, Sum]],
) -> None:
    """``objective`` from messages on arcs and messages that end in switches."""
    unit_s = time_unit_s(instance)
    loads: dict[Arc, list[Sum]] = {}
    fixed: dict[Arc, float] = {}
    for j, network in enumerate(networks):
        for arc in network.sent:
            fixed[arc] = fixed.get(arc, 0.0) + network.job.gradient_bytes / bandwidth(instance, arc) / unit_s
        for arc, messages in on[j].items():
            each_s = network.job.gradient_bytes / bandwidth(instance, arc) / unit_s
            loads.setdefault(arc, []).append(each_s * messages)
    if instance.goal == "utilization":
        busy = joined(each for own in loads.values() for each in own)
        block.objective = pyo.Expression(expr=busy.expression + sum(fixed.values()))
        return
    block.congestion = pyo.Var(domain=pyo.NonNegativeReals, doc="the largest time")
    rows = Rows()
    for arc in sorted({*loads, *fixed}):
        busy = joined(loads.get(arc, [])) + fixed.get(arc, 0.0)
        rows["links_are_no_busier"][arc] = covers(block.congestion, busy)
    for v, node in enumerate(instance.nodes):
        users = [(j, network) for j, network in enumerate(networks) if v in network.able]
        if node.aggregation_bytes_per_s is not None and users:
            message_s = {j: network.job.gradient_bytes / node.aggregation_bytes_per_s / unit_s for j, network in users}
            busy = joined(message_s[j] * ended[j][v] for j, _ in users)
            rows["switches_are_no_busier"][v] = covers(block.congestion, busy)
    rows.add_to(
        block,
        links_are_no_busier="no link is busy for longer than the congestion",
        switches_are_no_busier="no switch adds up for longer than the congestion",
    )
    block.objective = pyo.Expression(expr=block.congestion)
