"""The independent check of aggregation trees in a network, from the problem statement."""

from collections import Counter
from collections.abc import Iterator
from fractions import Fraction
from itertools import pairwise

from ddlopt.models.aggregation.graph.instance import AggregationTrees, GraphInstance
from ddlopt.models.contracts import Evaluation, Number, Violation
from ddlopt.models.tolerances import ROUNDING


def evaluate_graph(instance: GraphInstance, solution: AggregationTrees, exact: bool = False) -> Evaluation:
    """The goal of the instance, and what the routes violate.

    Details are both times (``utilization_s``, ``congestion_s``), the sums of rates ``equal_share_bytes_per_s`` (the
    goal *rates*) and ``max_min_bytes_per_s`` (rates grow together, each until a link or a switch on its way is full),
    ``aggregators`` (pairs of a job and a switch), ``connections`` (the most messages of a job that arrive at its
    server) and ``messages`` (sum over arcs).
    """
    broken = list(_malformed(instance, solution))
    if broken:
        return Evaluation(None, tuple(broken))
    check = _Check(instance, solution, exact)
    violations = (*check.routes(), *check.starts(), *check.cycles(), *check.limits(), *check.merging())
    details = check.details()
    names = {"utilization": "utilization_s", "congestion": "congestion_s", "rates": "equal_share_bytes_per_s"}
    return Evaluation(details[names[instance.goal]], violations, details)


def _malformed(instance: GraphInstance, solution: AggregationTrees) -> Iterator[Violation]:
    if len(solution.trees) != len(instance.jobs):
        yield Violation("every job has a tree", "trees", len(solution.trees), len(instance.jobs))
        return
    count = len(instance.nodes)
    for j, tree in enumerate(solution.trees):
        for place, route in enumerate(tree):
            where = f"trees[{j}][{place}]"
            odd = [node for node in route if not 0 <= node < count]
            if odd:
                yield Violation("node exists", where, odd[0], count - 1)
            elif len(route) < 2:
                yield Violation("route leads somewhere", where, len(route), 2)
            else:
                for arc in pairwise(route):
                    if arc not in instance.arc_of:
                        yield Violation("route follows links", f"{where}, nodes {arc[0]} to {arc[1]}", 0, 1)


class _Check:
    def __init__(self, instance: GraphInstance, solution: AggregationTrees, exact: bool) -> None:
        self._instance = instance
        self._trees = solution.trees
        self._number = Fraction if exact else float
        self._messages = [Counter(arc for route in tree for arc in pairwise(route)) for tree in solution.trees]
        # A switch aggregates for a job if a message of the job ends there.
        self._ended = [
            Counter(route[-1] for route in tree if route[-1] != job.server)
            for job, tree in zip(instance.jobs, solution.trees, strict=True)
        ]

    def routes(self) -> Iterator[Violation]:
        """Routes that visit a node again, pass through nodes that do not forward, or leave the server."""
        for j, (job, tree) in enumerate(zip(self._instance.jobs, self._trees, strict=True)):
            for place, route in enumerate(tree):
                where = f"trees[{j}][{place}]"
                if len(set(route)) < len(route):
                    yield Violation("route visits a node once", where, len(route), len(set(route)))
                if job.server in route[:-1]:
                    yield Violation("route ends where it meets the server", where, route.index(job.server), len(route))
                for node in route[1:-1]:
                    if not self._instance.nodes[node].forwards:
                        yield Violation("nodes on the way forward", f"{where}, node {node}", 0, 1)

    def starts(self) -> Iterator[Violation]:
        """Workers and aggregating switches that do not start one route; routes that start elsewhere."""
        for j, (job, tree) in enumerate(zip(self._instance.jobs, self._trees, strict=True)):
            begun = Counter(route[0] for route in tree)
            for node in sorted({*begun, *job.workers, *self._ended[j]}):
                due = int(node in job.workers or node in self._ended[j])
                if begun[node] != due:
                    yield Violation("senders start one route", f"job {j}, node {node}", begun[node], due)

    def cycles(self) -> Iterator[Violation]:
        """Routes that lead from switch to switch and never to the server."""
        for j, (job, tree) in enumerate(zip(self._instance.jobs, self._trees, strict=True)):
            follows = {route[0]: route[-1] for route in tree}
            for start in sorted(follows):
                node, steps = follows[start], 1
                while node in follows and node not in (start, job.server) and steps <= len(follows):
                    node, steps = follows[node], steps + 1
                if node == start:
                    yield Violation("messages reach the server", f"job {j}, node {start}", steps, len(follows))

    def limits(self) -> Iterator[Violation]:
        """Slots of switches, and the numbers of aggregators and of connections."""
        instance = self._instance
        used: Counter[int] = Counter()
        for job, ended in zip(instance.jobs, self._ended, strict=True):
            for node in ended:
                used[node] += job.slots
        for node, slots in sorted(used.items()):
            if slots > instance.nodes[node].slots:
                yield Violation("slots suffice", f"node {node}", slots, instance.nodes[node].slots)
        if instance.aggregators is not None and self._aggregators() > instance.aggregators:
            yield Violation("aggregators are within the budget", "trees", self._aggregators(), instance.aggregators)
        if instance.connections is not None:
            for j in range(len(instance.jobs)):
                if self._connections(j) > instance.connections:
                    where = f"job {j}, node {instance.jobs[j].server}"
                    yield Violation(
                        "few connections arrive at the server", where, self._connections(j), instance.connections
                    )

    def merging(self) -> Iterator[Violation]:
        """Nodes that several messages of a job leave, where they must be aggregated."""
        if not self._instance.merging:
            return
        for j, messages in enumerate(self._messages):
            leaving: Counter[int] = Counter()
            for (node, _), number in messages.items():
                leaving[node] += number
            for node, number in sorted(leaving.items()):
                if number > 1:
                    yield Violation("messages that meet are aggregated", f"job {j}, node {node}", number, 1)

    def details(self) -> dict[str, Number]:
        """All figures."""
        equal, fair = self._equal_shares(), self._max_min()
        zero = self._number(0)
        return {
            "utilization_s": sum(self._link_times(), zero),
            "congestion_s": max((*self._link_times(), *self._switch_times()), default=zero),
            "equal_share_bytes_per_s": sum(equal, zero),
            "max_min_bytes_per_s": sum(fair, zero),
            "aggregators": self._aggregators(),
            "connections": max(map(self._connections, range(len(self._instance.jobs)))),
            "messages": sum(sum(messages.values()) for messages in self._messages),
        }

    def _aggregators(self) -> int:
        return sum(len(ended) for ended in self._ended)

    def _connections(self, j: int) -> int:
        return sum(route[-1] == self._instance.jobs[j].server for route in self._trees[j])

    def _bandwidth(self, arc: tuple[int, int]) -> Number:
        return self._number(self._instance.links[self._instance.arc_of[arc] // 2].bandwidth_bytes_per_s)

    def _link_times(self) -> list[Number]:
        """Seconds that each arc is busy."""
        busy: dict[tuple[int, int], Number] = {}
        for job, messages in zip(self._instance.jobs, self._messages, strict=True):
            for arc, number in messages.items():
                busy[arc] = busy.get(arc, self._number(0)) + number * self._number(job.gradient_bytes)
        return [load / self._bandwidth(arc) for arc, load in busy.items()]

    def _switch_times(self) -> list[Number]:
        """Seconds that the aggregators of each switch with a rate are busy."""
        busy: dict[int, Number] = {}
        for job, ended in zip(self._instance.jobs, self._ended, strict=True):
            for node, number in ended.items():
                busy[node] = busy.get(node, self._number(0)) + number * self._number(job.gradient_bytes)
        rates = {node: self._instance.nodes[node].aggregation_bytes_per_s for node in busy}
        return [busy[node] / self._number(rate) for node, rate in rates.items() if rate is not None]

    def _resources(self) -> list[tuple[Number, dict[int, int]]]:
        """Capacity of each arc and of each switch with a rate, and how often each job counts on it."""
        users: dict[object, dict[int, int]] = {}
        capacity: dict[object, Number] = {}
        for j, messages in enumerate(self._messages):
            for arc, number in messages.items():
                users.setdefault(arc, {})[j] = number
                capacity[arc] = self._bandwidth(arc)
        for j, ended in enumerate(self._ended):
            for node in ended:
                rate = self._instance.nodes[node].aggregation_bytes_per_s
                if rate is not None:
                    users.setdefault(node, {})[j] = 1
                    capacity[node] = self._number(rate)
        return [(capacity[key], counts) for key, counts in users.items()]

    def _equal_shares(self) -> list[Number]:
        rates: dict[int, Number] = {}
        for capacity, counts in self._resources():
            share = capacity / sum(counts.values())
            for j in counts:
                rates[j] = min(rates.get(j, share), share)
        return list(rates.values())

    def _max_min(self) -> list[Number]:
        """Rates that grow together; those of jobs on whatever is full stay."""
        resources = self._resources()
        rates: dict[int, Number] = {}
        growing = {j for _, counts in resources for j in counts}
        while growing:
            levels: list[tuple[Number, dict[int, int]]] = []
            for capacity, counts in resources:
                load = sum(number for j, number in counts.items() if j in growing)
                if load:
                    taken = sum((counts[j] * rates[j] for j in counts if j in rates), self._number(0))
                    levels.append(((capacity - taken) / load, counts))
            level = min(each for each, _ in levels)
            limit = level if isinstance(level, Fraction) else level + abs(level) * ROUNDING
            full = {j for each, counts in levels if each <= limit for j in counts} & growing
            rates.update(dict.fromkeys(full, level))
            growing -= full
        return list(rates.values())
