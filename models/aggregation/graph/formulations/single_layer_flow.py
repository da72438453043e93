"""Aggregation in a network as an integer program of one layer."""

from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import pyomo.environ as pyo

from ddlopt.models.aggregation.graph.formulations.graph_aggregation import Terms, add_goal, add_rows, limit_rows
from ddlopt.models.aggregation.graph.instance import AggregationTrees, GraphInstance
from ddlopt.models.aggregation.graph.network import JobNetwork, job_network, routes_of, time_unit_s


@dataclass(frozen=True)
class SingleLayerFlow:
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

    sense: ClassVar[Literal["minimize", "maximize"]] = "minimize"
    # Incumbents may have messages that run in loops, which the solution read leaves out.
    outer: ClassVar[bool] = True

    def refuses(self, instance: Any) -> str | None:
        """Other problems, rates, and switches that aggregate but do not forward."""
        if not isinstance(instance, GraphInstance):
            return f"it answers a {GraphInstance.kind}, and this is a {instance.kind}"
        if instance.goal == "rates":
            return "it is for utilization and congestion, and the goal is rates"
        for place, node in enumerate(instance.nodes):
            if node.slots and not node.forwards:
                return f"nodes[{place}] ('{node.name}') has slots and does not forward"
        return None

    def scope(self, instance: GraphInstance) -> str | None:
        """All trees."""
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
        rows = [row for j, network in enumerate(networks) for row in _job_rows(block, j, network)]
        add_rows(block, "jobs_send", rows, "messages and gradients of each job")
        on = [{arc: [(1.0, block.messages[j, *arc])] for arc in network.arcs} for j, network in enumerate(networks)]
        ended = [_ended(block, j, network) for j, network in enumerate(networks)]
        add_rows(block, "limits", limit_rows(block, instance, networks, on), "slots, aggregators, connections, merging")
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


def _ended(block: pyo.Block, j: int, network: JobNetwork) -> dict[int, Terms]:
    """Messages that end in each switch: one more than it saves, unless it has a gradient of its own."""
    return {
        v: [(1.0, block.fewer[j, v]), *([] if v in network.job.workers else [(1.0, block.aggregates[j, v])])]
        for v in network.able
    }


def _job_rows(block: pyo.Block, j: int, network: JobNetwork) -> list[tuple[float | None, Terms, float | None]]:
    rows: list[tuple[float | None, Terms, float | None]] = []
    workers = float(len(network.job.workers))
    for v in network.nodes:
        starting = float(network.groups.get(v, 0))
        for variables, saved in ((block.gradients, False), (block.messages, True)):
            terms = [(1.0, variables[j, *arc]) for arc in network.arcs if arc[0] == v]
            terms += [(-1.0, variables[j, *arc]) for arc in network.arcs if arc[1] == v]
            if saved and v in network.able:
                terms.append((1.0, block.fewer[j, v]))
            rows.append((starting, terms, starting))
    for v in network.able:
        fewer, used = block.fewer[j, v], block.aggregates[j, v]
        rows += [(None, [(1.0, used), (-1.0, fewer)], 0.0), (None, [(1.0, fewer), (-workers, used)], 0.0)]
    for arc in network.arcs:
        x, f = block.messages[j, *arc], block.gradients[j, *arc]
        rows += [(None, [(1.0, x), (-1.0, f)], 0.0), (None, [(1.0, f), (-workers, x)], 0.0)]
    return rows
