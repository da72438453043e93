"""Rates of jobs that share links equally, as an integer program."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, ClassVar, Literal

import pyomo.environ as pyo

from ddlopt.models.aggregation.graph.bounds import widest
from ddlopt.models.aggregation.graph.formulations.graph_aggregation import LIMIT_ROWS, limit_rows
from ddlopt.models.aggregation.graph.instance import AggregationTrees, GraphInstance
from ddlopt.models.aggregation.graph.network import Arc, JobNetwork, bandwidth, job_network, routes_of
from ddlopt.models.contracts import Instance
from ddlopt.models.covering import FormulationBase
from ddlopt.models.linear import Rows, Sum, notable, term, total, weighted
from ddlopt.models.tolerances import let_pass


@dataclass(frozen=True)
class RateLevels(FormulationBase):
    r"""Trees of merged messages, and of each job the level of its rate.

    With merging a job has at most one message on an arc and one way out of every node: :math:`x_{ja} = 1` if arc a is
    in its tree, :math:`a_{jv} = 1` if two messages or more meet in v, or a worker's own with another. Rates can only be
    capacities over numbers of jobs, :math:`L_\ell`; :math:`Y_{j\ell} = 1` for that of job j:

    .. math::
        \max\ & \textstyle\sum_{j \ell} L_\ell Y_{j\ell}, \qquad \sum_\ell Y_{j\ell} = 1 \\
        & x_j(\delta^+(v)) \le 1, \qquad x_{ja} \le x_j(\delta^+(v)) && a \in \delta^-(v) \\
        & x_j(\delta^-(v)) + [v \in W_j] \le 1 + (|W_j| - [v \notin W_j]) a_{jv} \\
        & \textstyle\sum_k x_{ka} \le \sum_\ell \lfloor c_a / L_\ell \rfloor Y_{j\ell} + n_{ja} (1 - x_{ja}),

    and the last row with a for switches with an aggregation rate; :math:`\lfloor \cdot \rfloor` is at most the number
    of jobs that can be there, and :math:`n_{ja}` counts the others that can, less what any rate of j allows. Where all
    capacities are equal these are the levels c / n.

    A flow of all gradients on the arcs used, at most :math:`|W_j|` on each, leads to the server. With ``flows`` (ours)
    instead each group of workers has a flow of one, at most :math:`x_{ja}` on each arc, and one of its job's rate,
    :math:`\varphi_{jga} \le s_{ja}`, where :math:`s_{ja} \le x_{ja} \max_\ell L_\ell` is the rate that the job takes
    of arc a and :math:`\sum_j s_{ja} \le c_a`; likewise of switches
    :math:`s_{jv} \ge \lambda_j - (1 - a_{jv}) \max_\ell L_\ell`.

    Parameters
    ----------
    flows : bool

    Ports
    -----
    ``uses[j, u, v]``
        x; 1 if job j sends from u to v.
    ``aggregates[j, v]``
        a; 1 if switch v aggregates for job j.
    ``level[j, l]``
        Y; levels of all rates that are possible, in falling order.
    ``objective``
        Sum of rates in units of the largest level, to be maximised.

    References
    ----------
    The public instances of jianglong-nie/INARouting and the bilinear program in its code, of which this is a linear
    form.
    """

    flows: bool = True

    covers: ClassVar[type[Instance]] = GraphInstance
    sense: ClassVar[Literal["minimize", "maximize"]] = "maximize"
    outer: ClassVar[bool] = True

    def refuses(self, instance: Any) -> str | None:
        """Goals, and jobs whose messages need not merge."""
        if instance.goal != "rates":
            return f"it is for rates, and the goal is {instance.goal}"
        if not instance.merging:
            return "merging is not set, and without it a job may have several messages on a link; use graph-search"
        for place, node in enumerate(instance.nodes):
            if node.slots and not node.forwards:
                return f"nodes[{place}] ('{node.name}') has slots and does not forward"
        return None

    def build(self, block: pyo.Block, instance: GraphInstance) -> None:
        """Fill ``block``."""
        networks = [job_network(instance, job) for job in instance.jobs]
        levels = rate_levels(instance)
        arcs = [(j, *arc) for j, network in enumerate(networks) for arc in network.arcs]
        able = [(j, v) for j, network in enumerate(networks) for v in network.able]
        pairs = [(j, number) for j in range(len(networks)) for number in range(len(levels))]
        block.uses = pyo.Var(arcs, domain=pyo.Binary, doc="1 if the job sends on the arc")
        block.aggregates = pyo.Var(able, domain=pyo.Binary, doc="1 if the switch aggregates for the job")
        block.level = pyo.Var(pairs, domain=pyo.Binary, doc="1 if the job has this rate")
        rates = [[(level, block.level[j, number]) for number, level in enumerate(levels)] for j in range(len(networks))]
        rows = Rows()
        for j, network in enumerate(networks):
            rows["jobs_have_a_rate"][j] = total(variable for _, variable in rates[j]) == 1
            _tree_rows(rows, block, j, network)
        share_rows(rows, [*_arc_shares(block, instance, networks), *switch_shares(block, instance, networks)], rates)
        if self.flows:
            _flow_rows(rows, block, instance, networks, levels)
        else:
            _single_flow_rows(rows, block, networks)
        on = [{arc: term(block.uses[j, *arc]) for arc in network.arcs} for j, network in enumerate(networks)]
        limit_rows(rows, block, instance, networks, on)
        rows.add_to(block, **RATE_ROWS, **_TREE_ROWS, **_FLOW_ROWS, **LIMIT_ROWS)
        in_units = [(level / levels[0], variable) for own in rates for level, variable in own]
        block.objective = pyo.Expression(expr=weighted(in_units).expression)

    def start(self, block: pyo.Block, instance: GraphInstance, solution: AggregationTrees) -> None:
        """Set trees and which switches aggregate."""
        used = [{(one, two) for r in tree for one, two in pairwise(r)} for tree in solution.trees]
        for (j, one, other), variable in block.uses.items():
            variable.set_value(int((one, other) in used[j]))
        for (j, v), variable in block.aggregates.items():
            variable.set_value(int(any(route[-1] == v for route in solution.trees[j])))

    def read(self, block: pyo.Block, instance: GraphInstance) -> AggregationTrees:
        """The routes, followed from the workers.

        Raises
        ------
        SolverError
            If messages do not reach the server.
        """
        trees = []
        for j, job in enumerate(instance.jobs):
            network = job_network(instance, job)
            follows = dict(network.sent)
            follows |= {one: two for one, two in network.arcs if round(pyo.value(block.uses[j, one, two]))}
            reached: dict[int, int] = {}
            for worker in job.workers:
                node = worker
                while node in follows and node not in reached:
                    reached[node] = node = follows[node]
            messages = dict.fromkeys(reached.items(), 1)
            met = {v: sum(two == v for two in reached.values()) for v in network.able}
            ended = {v: n for v, n in met.items() if n + int(v in job.workers) >= 2}
            trees.append(routes_of(job, messages, ended))
        return AggregationTrees(instance=instance.name, trees=tuple(trees))

    def objective_value(self, instance: GraphInstance, value: float) -> float:
        """Bytes per second."""
        return value * rate_levels(instance)[0]


def rate_levels(instance: GraphInstance) -> tuple[float, ...]:
    """Rates that a job can have: any capacity over any number of jobs, the largest first.

    None is above what some job has by itself on the widest routes of its workers, which is the capacity of a link.
    """
    capacities = {link.bandwidth_bytes_per_s for link in instance.links}
    capacities |= {n.aggregation_bytes_per_s for n in instance.nodes if n.aggregation_bytes_per_s is not None}
    rates = {capacity / number for capacity in capacities for number in range(1, len(instance.jobs) + 1)}
    widths = [(job, widest(instance, job)) for job in instance.jobs]
    most = max(min(width[worker] for worker in job.workers) for job, width in widths)
    return tuple(sorted((rate for rate in rates if rate <= most), reverse=True))


_TREE_ROWS = {
    "one_message_leaves": "a node sends one message, and one with messages of its own does",
    "what_arrives_leaves": "a node that receives a message sends one",
    "nothing_else_leaves": "a node without messages of its own sends one only if it receives one",
    "messages_meet_where_aggregated": "several messages only meet where the job is aggregated",
}


def _tree_rows(rows: Rows, block: pyo.Block, j: int, network: JobNetwork) -> None:
    into: dict[int, list[Any]] = {v: [] for v in network.nodes}
    out: dict[int, list[Any]] = {v: [] for v in network.nodes}
    for arc in network.arcs:
        out[arc[0]].append((arc, block.uses[j, *arc]))
        if arc[1] in into:
            into[arc[1]].append((arc, block.uses[j, *arc]))
    workers = len(network.job.workers)
    for v in network.nodes:
        leaving, entering = total(x for _, x in out[v]), total(x for _, x in into[v])
        starting = network.groups.get(v, 0)
        if starting:
            rows["one_message_leaves"][j, v] = leaving == 1
        else:
            rows["one_message_leaves"][j, v] = leaving <= 1
            for arc, x in into[v]:
                rows["what_arrives_leaves"][j, *arc] = leaving >= term(x)
            rows["nothing_else_leaves"][j, v] = leaving <= entering
        if v in network.able:
            most, aggregates = workers if v in network.job.workers else workers - 1, term(block.aggregates[j, v])
            rows["messages_meet_where_aggregated"][j, v] = entering + starting <= 1 + most * aggregates
        elif starting + len(into[v]) > 1:
            rows["messages_meet_where_aggregated"][j, v] = entering + starting <= 1


@dataclass(frozen=True)
class Shared:
    """A capacity that jobs share.

    Parameters
    ----------
    capacity : float
        Bytes per second.
    users : mapping of int to (variable, int)
        Jobs that may be there, each with the binary that says so and the most messages of it.
    load : Sum
        Messages of these jobs.
    always : mapping of int to int
        Jobs that are there whatever is decided, and their messages.
    """

    capacity: float
    users: Mapping[int, tuple[Any, int]]
    load: Sum
    always: Mapping[int, int]

    @property
    def most(self) -> int:
        """Messages that can be there."""
        return sum(self.always.values()) + sum(most for _, most in self.users.values())


RATE_ROWS = {
    "jobs_have_a_rate": "a job has one rate",
    "rates_allow_messages": "a job is only where there are no more messages than its rate allows",
}
"""What rows of rates say, by name."""


def share_rows(rows: Rows, shared: Sequence[Shared], rates: Sequence[Sequence[tuple[float, Any]]]) -> None:
    """A job is only where there are no more messages than its rate allows; ``rates``: levels and their binaries."""
    for place, each in enumerate(shared):
        messages = each.load + sum(each.always.values())
        for j in (*each.users, *each.always):
            within = [min(each.most, math.floor(let_pass(each.capacity) / rate)) for rate, _ in rates[j]]
            pairs = zip(within, rates[j], strict=True)
            allowed = weighted((float(most), variable) for most, (_, variable) in pairs if most)
            if j in each.always:
                rows["rates_allow_messages"][place, j] = messages <= allowed
                continue
            uses, own = each.users[j]
            # Big-M: without job j there are at most M messages more than its rate would allow.
            most = max(0, each.most - own - min(within))
            rows["rates_allow_messages"][place, j] = messages - allowed + most * term(uses) <= most


def switch_shares(block: pyo.Block, instance: GraphInstance, networks: Sequence[JobNetwork]) -> list[Shared]:
    """The rates of switches, which jobs share that they aggregate for."""
    found = []
    for v, node in enumerate(instance.nodes):
        users = {j: (block.aggregates[j, v], 1) for j, network in enumerate(networks) if v in network.able}
        if node.aggregation_bytes_per_s is not None and users:
            load = total(variable for variable, _ in users.values())
            found.append(Shared(node.aggregation_bytes_per_s, users, load, {}))
    return found


def _arc_shares(block: pyo.Block, instance: GraphInstance, networks: Sequence[JobNetwork]) -> list[Shared]:
    users: dict[Arc, dict[int, tuple[Any, int]]] = {}
    always: dict[Arc, dict[int, int]] = {}
    for j, network in enumerate(networks):
        for arc in network.arcs:
            users.setdefault(arc, {})[j] = (block.uses[j, *arc], 1)
        for arc in network.sent:
            always.setdefault(arc, {})[j] = 1
    return [
        Shared(
            bandwidth(instance, arc),
            users.get(arc, {}),
            total(variable for variable, _ in users.get(arc, {}).values()),
            always.get(arc, {}),
        )
        for arc in dict.fromkeys((*users, *always))
    ]


_FLOW_ROWS = {
    "gradients_are_conserved": "all gradients of a job reach the server",
    "gradients_are_in_messages": "gradients travel in messages",
    "ones_are_conserved": "one flows from each group to the server",
    "rates_are_conserved": "the rate flows from each group to the server",
    "flows_take_messages": "flows of one take messages",
    "rates_are_within_shares": "the rate of a flow is within the job's share of the arc",
    "rates_follow_flows": "a rate, in units of the largest, is at most the flow of one",
    "shares_take_messages": "a job has a share of the arcs where it has a message",
    "links_are_shared": "shares are within the bandwidth of a link",
    "switches_give_shares": "a job has its rate in a switch that aggregates for it",
    "switches_are_shared": "shares are within the rate of a switch",
}


def _single_flow_rows(rows: Rows, block: pyo.Block, networks: list[JobNetwork]) -> None:
    """All gradients of a job reach the server."""
    block.gradients = pyo.Var(list(block.uses), domain=pyo.NonNegativeReals, doc="gradients of a job on an arc")
    for j, network in enumerate(networks):
        for v in network.nodes:
            out = total(block.gradients[j, *arc] for arc in network.arcs if arc[0] == v)
            into = total(block.gradients[j, *arc] for arc in network.arcs if arc[1] == v)
            rows["gradients_are_conserved"][j, v] = out - into == network.groups.get(v, 0)
        for arc in network.arcs:
            most = len(network.job.workers) * term(block.uses[j, *arc])
            rows["gradients_are_in_messages"][j, *arc] = term(block.gradients[j, *arc]) <= most


def _flow_rows(
    rows: Rows, block: pyo.Block, instance: GraphInstance, networks: list[JobNetwork], levels: tuple[float, ...]
) -> None:
    """Flows of one and of the rate of each group, in units of the largest level."""
    flows = [(j, g, *arc) for j, network in enumerate(networks) for g in network.groups for arc in network.arcs]
    block.flow = pyo.Var(flows, domain=pyo.NonNegativeReals, doc="flow of one from a group to the server")
    block.rate_flow = pyo.Var(flows, domain=pyo.NonNegativeReals, doc="flow of the rate from a group to the server")
    arcs = list(block.uses)
    block.share = pyo.Var(arcs, domain=pyo.NonNegativeReals, doc="rate of a job on an arc")
    # Rates that are nothing beside others count as such in rows: less flows, which makes them weaker.
    rates = [
        notable(weighted((level / levels[0], block.level[j, number]) for number, level in enumerate(levels)))
        for j in range(len(networks))
    ]
    for j, network in enumerate(networks):
        _job_flow_rows(rows, block, j, network, rates[j])
    by_arc: dict[Arc, list[Any]] = {}
    for j, one, two in arcs:
        by_arc.setdefault((one, two), []).append(block.share[j, one, two])
    for arc, shares in by_arc.items():
        rows["links_are_shared"][arc] = total(shares) <= bandwidth(instance, arc) / levels[0]
    _switch_share_rows(rows, block, instance, rates, levels[0])


def _job_flow_rows(rows: Rows, block: pyo.Block, j: int, network: JobNetwork, rate: Sum) -> None:
    out = {v: [arc for arc in network.arcs if arc[0] == v] for v in network.nodes}
    into = {v: [arc for arc in network.arcs if arc[1] == v] for v in network.nodes}
    for g in network.groups:
        flow = {arc: block.flow[j, g, *arc] for arc in network.arcs}
        rate_flow = {arc: block.rate_flow[j, g, *arc] for arc in network.arcs}
        for v in network.nodes:
            ones = total(flow[arc] for arc in out[v]) - total(flow[arc] for arc in into[v])
            rates = total(rate_flow[arc] for arc in out[v]) - total(rate_flow[arc] for arc in into[v])
            rows["ones_are_conserved"][j, g, v] = ones == (1 if v == g else 0)
            rows["rates_are_conserved"][j, g, v] = rates == (rate if v == g else 0)
        for arc in network.arcs:
            share, uses = term(block.share[j, *arc]), term(block.uses[j, *arc])
            rows["flows_take_messages"][j, g, *arc] = term(flow[arc]) <= uses
            rows["rates_are_within_shares"][j, g, *arc] = term(rate_flow[arc]) <= share
            rows["rates_follow_flows"][j, g, *arc] = term(rate_flow[arc]) <= term(flow[arc])
    for arc in network.arcs:
        rows["shares_take_messages"][j, *arc] = term(block.share[j, *arc]) <= term(block.uses[j, *arc])


def _switch_share_rows(
    rows: Rows, block: pyo.Block, instance: GraphInstance, rates: Sequence[Sum], unit: float
) -> None:
    able = list(block.aggregates)
    block.switch_share = pyo.Var(able, domain=pyo.NonNegativeReals, doc="rate of a job in a switch")
    by_switch: dict[int, list[Any]] = {}
    for j, v in able:
        if instance.nodes[v].aggregation_bytes_per_s is None:
            continue
        share, aggregates = block.switch_share[j, v], term(block.aggregates[j, v])
        by_switch.setdefault(v, []).append(share)
        rows["switches_give_shares"][j, v] = term(share) - rates[j] - aggregates >= -1
    for v, shares in by_switch.items():
        rows["switches_are_shared"][v] = total(shares) <= (instance.nodes[v].aggregation_bytes_per_s or 0.0) / unit
