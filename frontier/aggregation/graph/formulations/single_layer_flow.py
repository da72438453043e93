"""Aggregation in a network as an integer program of one layer."""

from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import pyomo.environ as pyo

from ddlopt.models.aggregation.graph.formulations.graph_aggregation import LIMIT_ROWS, add_goal, limit_rows
from ddlopt.models.aggregation.graph.instance import AggregationTrees, GraphInstance
from ddlopt.models.aggregation.graph.network import JobNetwork, job_network, routes_of, time_unit_s
from ddlopt.models.contracts import Instance
from ddlopt.models.covering import FormulationBase
from ddlopt.models.linear import Rows, Sum, term, total


@dataclass(frozen=True)
class SingleLayerFlow(FormulationBase):
    r"""Messages on arcs, and how many gradients are in them.

    Of every job :math:`x_a` messages with :math:`f_a` gradients in them are on arc a; :math:`a_v = 1` if switch v
    aggregates, and :math:`o_v` messages fewer leave it than arrive:

    .. math::
        & f(\delta^+(v)) - f(\delta^-(v)) = [v \in W], \qquad x(\delta^+(v)) - x(\delta^-(v)) = [v \in W] - o_v \\
        & a_v \le o_v \le |W| a_v, \qquad x_a \le f_a \le |W| x_a

    at every node v but the server. It is that of the references with jobs of sizes and slots of their own, and with a
    worker's switch able to aggregate.

    Ports
    -----
    ``aggregates[j, v]``
        a; 1 if switch v aggregates for job j.
    ``messages[j, u, v]``
        x.
    ``congestion`` : goal congestion
        The largest time in units of :func:`~ddlopt.models.aggregation.graph.network.time_unit_s`.
    ``objective``
        Utilization or congestion in that unit, to be minimised.

    References
    ----------
    The integer program in the code of owlright/graph-match, with unit flows and messages. R. Segal, C. Avin,
    G. Scalosub, "SOAR: Minimizing network utilization with bounded in-network computing", CoNEXT 2021, for the problem
    on trees.
    """

    covers: ClassVar[type[Instance]] = GraphInstance
    sense: ClassVar[Literal["minimize", "maximize"]] = "minimize"
    # Incumbents may have messages that run in loops, which the solution read leaves out.
    outer: ClassVar[bool] = True

    def refuses(self, instance: Any) -> str | None:
        """Rates, and switches that aggregate but do not forward."""
        if instance.goal == "rates":
            return "it is for utilization and congestion, and the goal is rates"
        for place, node in enumerate(instance.nodes):
            if node.slots and not node.forwards:
                return f"nodes[{place}] ('{node.name}') has slots and does not forward"
        return None

    def build(self, block: pyo.Block, instance: GraphInstance) -> None:
        """Fill ``block``."""
        networks = [job_network(instance, job) for job in instance.jobs]
        arcs = [(j, *arc) for j, network in enumerate(networks) for arc in network.arcs]
        able = [(j, v) for j, network in enumerate(networks) for v in network.able]
        block.messages = pyo.Var(arcs, domain=pyo.NonNegativeIntegers, doc="messages on an arc")
        block.gradients = pyo.Var(arcs, domain=pyo.NonNegativeIntegers, doc="gradients in them")
        block.aggregates = pyo.Var(able, domain=pyo.Binary, doc="1 if the switch aggregates for the job")
        block.fewer = pyo.Var(able, domain=pyo.NonNegativeIntegers, doc="messages that a switch saves")
        rows = Rows()
        for j, network in enumerate(networks):
            _job_rows(rows, block, j, network)
        on = [{arc: term(block.messages[j, *arc]) for arc in network.arcs} for j, network in enumerate(networks)]
        ended = [_ended(block, j, network) for j, network in enumerate(networks)]
        limit_rows(rows, block, instance, networks, on)
        rows.add_to(block, **_JOB_ROWS, **LIMIT_ROWS)
        add_goal(block, instance, networks, on, ended)

    def start(self, block: pyo.Block, instance: GraphInstance, solution: AggregationTrees) -> None:
        """Set which switches aggregate."""
        for (j, v), variable in block.aggregates.items():
            server = instance.jobs[j].server
            variable.set_value(int(v != server and any(route[-1] == v for route in solution.trees[j])))

    def read(self, block: pyo.Block, instance: GraphInstance) -> AggregationTrees:
        """The routes.

        Raises
        ------
        SolverError
            If messages do not reach the server.
        """
        trees = []
        for j, job in enumerate(instance.jobs):
            network = job_network(instance, job)
            messages = dict.fromkeys(network.sent, 1)
            messages |= {arc: round(pyo.value(block.messages[j, *arc])) for arc in network.arcs}
            ended = {}
            for v in network.able:
                if round(pyo.value(block.aggregates[j, v])):
                    ended[v] = round(pyo.value(block.fewer[j, v])) + int(v not in job.workers)
            kept = {arc: number for arc, number in messages.items() if number}
            trees.append(routes_of(job, kept, ended))
        return AggregationTrees(instance=instance.name, trees=tuple(trees))

    def objective_value(self, instance: GraphInstance, value: float) -> float:
        """Seconds."""
        return value * time_unit_s(instance)


def _ended(block: pyo.Block, j: int, network: JobNetwork) -> dict[int, Sum]:
    """Messages that end in each switch: one more than it saves, unless it has a gradient of its own."""
    return {
        v: total([block.fewer[j, v], *([] if v in network.job.workers else [block.aggregates[j, v]])])
        for v in network.able
    }


_JOB_ROWS = {
    "gradients_are_conserved": "gradients are passed on",
    "messages_are_conserved": "messages are passed on, but for those that a switch saves",
    "aggregating_saves": "a switch that aggregates saves a message",
    "saved_where_aggregated": "only switches that aggregate save messages",
    "messages_have_gradients": "a message has a gradient in it",
    "gradients_are_in_messages": "gradients travel in messages",
}


def _job_rows(rows: Rows, block: pyo.Block, j: int, network: JobNetwork) -> None:
    x, f = block.messages, block.gradients
    workers = len(network.job.workers)
    for v in network.nodes:
        out, into = [arc for arc in network.arcs if arc[0] == v], [arc for arc in network.arcs if arc[1] == v]
        gradients = total(f[j, *arc] for arc in out) - total(f[j, *arc] for arc in into)
        messages = total(x[j, *arc] for arc in out) - total(x[j, *arc] for arc in into)
        if v in network.able:
            messages = messages + term(block.fewer[j, v])
        rows["gradients_are_conserved"][j, v] = gradients == network.groups.get(v, 0)
        rows["messages_are_conserved"][j, v] = messages == network.groups.get(v, 0)
    for v in network.able:
        fewer, aggregates = term(block.fewer[j, v]), term(block.aggregates[j, v])
        rows["aggregating_saves"][j, v] = aggregates <= fewer
        rows["saved_where_aggregated"][j, v] = fewer <= workers * aggregates
    for arc in network.arcs:
        messages, gradients = term(x[j, *arc]), term(f[j, *arc])
        rows["messages_have_gradients"][j, *arc] = messages <= gradients
        rows["gradients_are_in_messages"][j, *arc] = gradients <= workers * messages
