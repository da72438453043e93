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
    linear,
    routes_of,
    time_unit_s,
)

Terms = list[tuple[float, Any]]
Row = tuple[float | None, Terms, float | None]
"""A lower limit, a sum, and an upper limit."""


@dataclass(frozen=True)
class GraphAggregation:
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

    The two layers and their rows are ours; the model of one layer is
    :class:`~ddlopt.models.aggregation.graph.formulations.single_layer_flow.SingleLayerFlow`.

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

    sense: ClassVar[Literal["minimize", "maximize"]] = "minimize"
    # Incumbents may have messages that run in loops, which the solution read leaves out.
    outer: ClassVar[bool] = True

    def refuses(self, instance: Any) -> str | None:
        """Other problems, rates."""
        if not isinstance(instance, GraphInstance):
            return f"it answers a {GraphInstance.kind}, and this is a {instance.kind}"
        return "it is for utilization and congestion, and the goal is rates" if instance.goal == "rates" else None

    def scope(self, instance: GraphInstance) -> str | None:
        """All trees."""
        return None

    def build(self, block: pyo.Block, instance: GraphInstance) -> None:
        """Fill ``block``."""
        networks = [job_network(instance, job) for job in instance.jobs]
        add_messages(block, networks)
        rows = [row for j, network in enumerate(networks) for row in job_rows(block, instance, j, network)]
        add_rows(block, "jobs_send", rows, "messages of each job")
        on = messages_on(block, networks)
        ended = ended_in(block, networks)
        add_rows(block, "limits", limit_rows(block, instance, networks, on), "slots, aggregators, connections, merging")
        add_goal(block, instance, networks, on, ended)

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
                number = round(sum(pyo.value(variable) for _, variable in on[j].get(arc, [])))
                if number:
                    messages[arc] = number
            ends = {v: round(sum(value * pyo.value(one) for value, one in terms)) for v, terms in ended[j].items()}
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


def add_rows(block: pyo.Block, name: str, rows: list[Row], doc: str) -> None:
    """Add constraints, each a lower limit, terms and an upper limit; those without terms must hold as they are."""
    kept = [row for row in rows if row[1]]

    def rule(_: Any, number: int) -> Any:
        low, terms, high = kept[number]
        return low, linear(terms), high

    block.add_component(name, pyo.Constraint(range(len(kept)), rule=rule, doc=doc))
    if any((low or 0) > 0 or (high is not None and high < 0) for low, terms, high in rows if not terms):
        block.add_component(f"{name}_fail", pyo.Constraint(expr=pyo.Constraint.Infeasible))


def job_rows(
    block: pyo.Block, instance: GraphInstance, j: int, network: JobNetwork, rate: Terms | None = None
) -> list[Row]:
    """Messages of a job from its groups to its server; with ``rate``, messages times it.

    Every row is homogeneous but those where groups send, where a rate stands for one.
    """
    rows: list[Row] = []
    out: dict[int, list[Arc]] = {v: [] for v in network.nodes}
    into: dict[int, list[Arc]] = {v: [] for v in network.nodes}
    for arc in network.arcs:
        out[arc[0]].append(arc)
        if arc[1] in into:
            into[arc[1]].append(arc)
    able = set(network.able)
    workers = len(network.job.workers)
    for v in network.nodes:
        sums = [(1.0, block.sums[j, *arc]) for arc in out[v]] + [(-1.0, block.sums[j, *arc]) for arc in into[v]]
        if v in able:
            sums += [(-1.0, block.aggregates[j, v]), (1.0, block.sums_end[j, v])]
            rows.append((None, [(1.0, block.sums_end[j, v]), (-float(workers // 2), block.aggregates[j, v])], 0.0))
            entering = [(-1.0, block.sums[j, *arc]) for arc in into[v]]
            rows.append((None, [(1.0, block.sums_end[j, v]), *entering], 0.0))
            all_ends = [(1.0, block.raw_ends[j, g, v]) for g in network.groups] + [(1.0, block.sums_end[j, v])]
            least = 2.0 if instance.nodes[v].forwards else 1.0
            rows.append((0.0, [*all_ends, (-least, block.aggregates[j, v])], None))
            if v in network.job.workers:
                rows.append((0.0, [(1.0, block.raw_ends[j, v, v]), (-1.0, block.aggregates[j, v])], None))
        rows.append((0.0, sums, 0.0))
        for g, number in network.groups.items():
            raw = [(1.0, block.raw[j, g, *arc]) for arc in out[v]] + [(-1.0, block.raw[j, g, *arc]) for arc in into[v]]
            part = [(1.0, block.part[j, g, *arc]) for arc in out[v]]
            part += [(-1.0, block.part[j, g, *arc]) for arc in into[v]]
            if v in able:
                ends = block.raw_ends[j, g, v]
                raw.append((1.0, ends))
                part.append((-1.0 / number, ends))
                rows.append((None, [(1.0, ends), (-float(number), block.aggregates[j, v])], 0.0))
            starting = float(number) if g == v and rate is None else 0.0
            sent = [(-number * value, each) for value, each in rate or []] if g == v else []
            rows += [(starting, [*raw, *sent], starting), (0.0, part, 0.0)]
        if not instance.nodes[v].forwards:
            own = v if v in network.job.workers else None
            passing = [(1.0, block.raw[j, g, *arc]) for arc in out[v] for g in network.groups if g != own]
            rows.append((None, passing, 0.0))
            if v in able:
                leaving = [(1.0, block.sums[j, *arc]) for arc in out[v]]
                rows.append((None, [*leaving, (-1.0, block.aggregates[j, v])], 0.0))
    least = float(least_in_sum(instance, network))
    for arc in network.arcs:
        total = block.sums[j, *arc]
        for g in network.groups:
            rows.append((0.0, [(1.0, total), (-1.0, block.part[j, g, *arc])], None))
        weights = [(float(number), block.part[j, g, *arc]) for g, number in network.groups.items()]
        rows.append((0.0, [*weights, (-least, total)], None))
    return rows


def least_in_sum(instance: GraphInstance, network: JobNetwork) -> int:
    """Gradients that any sum has in it: a switch that does not forward may send its own."""
    return 2 if all(instance.nodes[v].forwards for v in network.able) else 1


def messages_on(block: pyo.Block, networks: Sequence[JobNetwork]) -> list[dict[Arc, Terms]]:
    """Of each job the messages on each arc that is decided on."""
    return [
        {
            arc: [(1.0, block.sums[j, *arc]), *((1.0, block.raw[j, g, *arc]) for g in network.groups)]
            for arc in network.arcs
        }
        for j, network in enumerate(networks)
    ]


def ended_in(block: pyo.Block, networks: list[JobNetwork]) -> list[dict[int, Terms]]:
    """Of each job the messages that end in each switch; the own gradient of a worker that aggregates is none."""
    found = []
    for j, network in enumerate(networks):
        ends: dict[int, Terms] = {}
        for v in network.able:
            ends[v] = [(1.0, block.sums_end[j, v]), *((1.0, block.raw_ends[j, g, v]) for g in network.groups)]
            if v in network.job.workers:
                ends[v].append((-1.0, block.aggregates[j, v]))
        found.append(ends)
    return found


def limit_rows(
    block: pyo.Block, instance: GraphInstance, networks: list[JobNetwork], on: list[dict[Arc, Terms]]
) -> list[Row]:
    """Slots, aggregators, connections, merging; ``block.aggregates`` is as in :class:`GraphAggregation`."""
    rows: list[Row] = []
    for v, node in enumerate(instance.nodes):
        terms = [
            (float(network.job.slots), block.aggregates[j, v])
            for j, network in enumerate(networks)
            if v in network.able
        ]
        if terms and sum(value for value, _ in terms) > node.slots:
            rows.append((None, terms, float(node.slots)))
    if instance.aggregators is not None:
        rows.append((None, [(1.0, each) for each in block.aggregates.values()], float(instance.aggregators)))
    for j, network in enumerate(networks):
        server = network.job.server
        if instance.connections is not None:
            arriving = [term for arc, terms in on[j].items() if arc[1] == server for term in terms]
            rows.append((None, arriving, float(instance.connections - network.direct)))
        if instance.merging:
            for v in network.nodes:
                rows.append((None, [term for arc, terms in on[j].items() if arc[0] == v for term in terms], 1.0))
    return rows


def add_goal(
    block: pyo.Block,
    instance: GraphInstance,
    networks: list[JobNetwork],
    on: list[dict[Arc, Terms]],
    ended: list[dict[int, Terms]],
) -> None:
    """``objective`` from messages on arcs and messages that end in switches."""
    unit_s = time_unit_s(instance)
    loads: dict[Arc, Terms] = {}
    fixed: dict[Arc, float] = {}
    for j, network in enumerate(networks):
        for arc in network.sent:
            fixed[arc] = fixed.get(arc, 0.0) + network.job.gradient_bytes / bandwidth(instance, arc) / unit_s
        for arc, terms in on[j].items():
            each = network.job.gradient_bytes / bandwidth(instance, arc) / unit_s
            loads.setdefault(arc, []).extend((each * value, variable) for value, variable in terms)
    if instance.goal == "utilization":
        terms = [term for arc in loads for term in loads[arc]]
        block.objective = pyo.Expression(expr=linear(terms) + sum(fixed.values()))
        return
    block.congestion = pyo.Var(domain=pyo.NonNegativeReals, doc="the largest time")
    rows: list[Row] = []
    for arc in sorted({*loads, *fixed}):
        negative = [(-value, variable) for value, variable in loads.get(arc, [])]
        rows.append((fixed.get(arc, 0.0), [(1.0, block.congestion), *negative], None))
    rows += [(0.0, [(1.0, block.congestion), *terms], None) for terms in _switch_terms(instance, networks, ended)]
    add_rows(block, "times_are_bounded", rows, "no link and no switch is busy for longer than the congestion")
    block.objective = pyo.Expression(expr=block.congestion)


def _switch_terms(instance: GraphInstance, networks: list[JobNetwork], ended: list[dict[int, Terms]]) -> list[Terms]:
    """For each switch with a rate the time that its aggregators are busy, negative."""
    unit_s = time_unit_s(instance)
    rows = []
    for v, node in enumerate(instance.nodes):
        if node.aggregation_bytes_per_s is None:
            continue
        terms: Terms = []
        for j, network in enumerate(networks):
            if v not in network.able:
                continue
            each = network.job.gradient_bytes / node.aggregation_bytes_per_s / unit_s
            terms += [(-each * value, variable) for value, variable in ended[j][v]]
        if terms:
            rows.append(terms)
    return rows
