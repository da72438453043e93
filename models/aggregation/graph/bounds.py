"""Bounds for the problem ``graph`` that need no solver."""

import heapq
import math
from collections.abc import Iterable, Iterator
from fractions import Fraction

from ddlopt.models.aggregation.graph.instance import GraphInstance, GraphJob
from ddlopt.models.contracts import Number
from ddlopt.models.errors import InfeasibleError
from ddlopt.models.tolerances import ROUNDING


def graph_bound(instance: GraphInstance) -> float:
    """A lower bound on the utilization or congestion in seconds, an upper bound on the sum of rates.

    *Utilization*: of every job the larger of the longest of the shortest routes and a dual ascent for the Steiner
    arborescence that any tree contains; where no switch may aggregate, the sum of all shortest routes. *Congestion*:
    what must leave or enter a node, or a switch with its hosts, over the sum of bandwidths, and one message of each job
    by the pigeonhole principle on one link; and the narrowest link of the widest route of each worker. Not more
    messages are saved within than there are slots for. *Rates*: those of :func:`most_rates`, and no more
    into one server's node than its links carry.

    Raises
    ------
    InfeasibleError
        If a job must have more connections than are allowed, as no switch can aggregate for it: then each of its
        messages arrives at the server by itself, one for every worker.
    """
    idle = [_cannot_aggregate(instance, job) for job in instance.jobs]
    for j, job in enumerate(instance.jobs):
        if idle[j] and instance.connections is not None and len(job.workers) > instance.connections:
            raise InfeasibleError(
                f"'{instance.name}': jobs[{j}] ('{job.name}') has {len(job.workers)} workers, no switch can aggregate "
                f"for it, and connections is {instance.connections}"
            )
    margin = ROUNDING if isinstance(instance.jobs[0].gradient_bytes, float) else 0
    if instance.goal == "rates":
        return _most_rates(instance) * (1 + margin)
    if instance.goal == "congestion":
        return _least_congestion_s(instance, idle) * (1 - margin)
    pairs = zip(instance.jobs, idle, strict=True)
    return _total(_least_utilization_s(instance, job, alone) for job, alone in pairs) * (1 - margin)


def exact_graph_bound(instance: GraphInstance) -> Fraction:
    """The same in rational numbers, of the same data as the fractions that they are."""
    # Figures that are no floats would not be read back as they are: this one way to rebuild an instance is unchecked.
    links = tuple(
        link.model_copy(update={"bandwidth_bytes_per_s": Fraction(link.bandwidth_bytes_per_s)})
        for link in instance.links
    )
    jobs = tuple(job.model_copy(update={"gradient_bytes": Fraction(job.gradient_bytes)}) for job in instance.jobs)
    found: Number = graph_bound(instance.model_copy(update={"links": links, "jobs": jobs}))
    if isinstance(found, float):
        raise TypeError(f"the bound of '{instance.name}' was rounded on the way")
    return Fraction(found)


def _total(values: Iterable[float]) -> float:
    """The sum, of floats rounded once, of fractions not at all."""
    values = list(values)
    return math.fsum(values) if any(isinstance(each, float) for each in values) else sum(values)


def _eased(step: float) -> float:
    return step * (1 + ROUNDING) if isinstance(step, float) else step


def _cannot_aggregate(instance: GraphInstance, job: GraphJob) -> bool:
    """Whether no switch ever adds up messages of the job."""
    if instance.aggregators == 0:
        return True
    return all(node.slots < job.slots for v, node in enumerate(instance.nodes) if v != job.server)


def may_pass(instance: GraphInstance, job: GraphJob) -> Iterator[tuple[int, tuple[int, int]]]:
    """Arcs, with their numbers, that a message of the job may be on."""
    ends = {v for v, node in enumerate(instance.nodes) if node.forwards or node.slots >= job.slots} | {job.server}
    begins = ends | set(job.workers)
    for number, (one, other) in enumerate(instance.arcs):
        if one != job.server and one in begins and other in ends:
            yield number, (one, other)


def _least_utilization_s(instance: GraphInstance, job: GraphJob, alone: bool) -> float:
    arcs = list(may_pass(instance, job))
    cost_s = {arc: job.gradient_bytes / instance.links[number // 2].bandwidth_bytes_per_s for number, arc in arcs}
    distance_s = distances(cost_s, job.server)
    if alone:
        return _total(distance_s[worker] for worker in job.workers)
    return max(_dual_ascent_s(cost_s, job), max(distance_s[worker] for worker in job.workers))


def distances(cost_s: dict[tuple[int, int], float], server: int) -> dict[int, float]:
    """Of the cheapest route from each node to the server."""
    before: dict[int, list[tuple[int, float]]] = {}
    for (one, other), cost in cost_s.items():
        before.setdefault(other, []).append((one, cost))
    found: dict[int, float] = {}
    waiting: list[tuple[float, int]] = [(0, server)]
    while waiting:
        far, node = heapq.heappop(waiting)
        if node not in found:
            found[node] = far
            for one, cost in before.get(node, ()):
                heapq.heappush(waiting, (far + cost, one))
    return found


def _dual_ascent_s(cost_s: dict[tuple[int, int], float], job: GraphJob) -> float:
    """Sum of prices of cuts between workers and the server, no arc above its cost (R. Wong, 1984)."""
    left = dict(cost_s)
    after: dict[int, list[int]] = {}
    for one, other in cost_s:
        after.setdefault(one, []).append(other)
    total, waiting = [], list(job.workers)
    while waiting:
        sizes = {}
        for worker in waiting:
            reached = _reached(after, left, worker)
            if job.server not in reached:
                sizes[worker] = reached
        if not sizes:
            break
        worker = min(sizes, key=lambda each: len(sizes[each]))
        cut = [arc for arc in left if arc[0] in sizes[worker] and arc[1] not in sizes[worker]]
        step = min(left[arc] for arc in cut)
        total.append(step)
        for arc in cut:
            left[arc] = left[arc] - step if left[arc] > _eased(step) else 0
        waiting = list(sizes)
    return _total(total)


def _reached(after: dict[int, list[int]], left: dict[tuple[int, int], float], start: int) -> set[int]:
    """Nodes that a worker reaches over arcs without any cost left."""
    found, waiting = {start}, [start]
    while waiting:
        node = waiting.pop()
        for other in after.get(node, ()):
            if left[node, other] <= 0 and other not in found:
                found.add(other)
                waiting.append(other)
    return found


def _least_congestion_s(instance: GraphInstance, idle: list[bool]) -> float:
    entering: dict[int, float] = {}
    least_s: float = 0
    for job, alone in zip(instance.jobs, idle, strict=True):
        width = widest(instance, job)
        least_s = max(least_s, *(job.gradient_bytes / width[worker] for worker in job.workers))
        least = len(job.workers) if alone else 1
        entering[job.server] = entering.get(job.server, 0) + least * job.gradient_bytes
    width = _width(instance)
    least_s = max(least_s, *(bytes_ / width[node] for node, bytes_ in entering.items()))
    return max(least_s, *(_crossing_s(instance, inside) for inside in _sides(instance)))


def _sides(instance: GraphInstance) -> Iterator[frozenset[int]]:
    """Every node alone, and with the hosts that have a link to it only."""
    near: dict[int, list[int]] = {}
    for one, other in instance.arcs:
        near.setdefault(one, []).append(other)
    for node, others in near.items():
        yield frozenset((node,))
        hosts = [other for other in others if len(near[other]) == 1]
        if hosts and len(hosts) < len(instance.nodes) - 1:
            yield frozenset((node, *hosts))


def _crossing_s(instance: GraphInstance, inside: frozenset[int]) -> float:
    """Time of what must leave or enter a set of nodes, at least a message of each job: of all, and of some on one link.

    Of several workers of a job inside, all messages leave unless a switch inside aggregates for it.
    """
    leaving, entering, savings = [], [], []
    for job in instance.jobs:
        within = [worker in inside for worker in job.workers]
        if job.server not in inside and any(within):
            leaving.append(job.gradient_bytes)
            savings.append((sum(within) - 1) * job.gradient_bytes)
        elif job.server in inside and not all(within):
            entering.append(job.gradient_bytes)
    speeds = [link.bandwidth_bytes_per_s for link in instance.links if len(inside.intersection(link.ends)) == 1]
    if not speeds:
        return 0
    joined = sum(instance.nodes[v].slots for v in inside) // min(job.slots for job in instance.jobs)
    more = _total(sorted(savings, reverse=True)[joined:])
    found = [(_total(leaving) + more) / _total(speeds)]
    for sizes in (sorted(leaving, reverse=True), sorted(entering, reverse=True)):
        if not sizes:
            continue
        found.append(_total(sizes) / _total(speeds))
        # Of q L + 1 messages on L links, one link has q + 1, at the least the smallest of them.
        for q in range(1, (len(sizes) - 1) // len(speeds) + 1):
            first = q * len(speeds) + 1
            found.append(_total(sizes[first - q - 1 : first]) / max(speeds))
    return max(found)


def _width(instance: GraphInstance) -> dict[int, float]:
    """Bandwidth of all links at each node."""
    width: dict[int, float] = {}
    for link in instance.links:
        for node in link.ends:
            width[node] = width.get(node, 0) + link.bandwidth_bytes_per_s
    return width


def widest(instance: GraphInstance, job: GraphJob) -> dict[int, float]:
    """Of the widest route from each node to the server, the bandwidth of its narrowest link."""
    before: dict[int, list[tuple[int, float]]] = {}
    for number, (one, other) in may_pass(instance, job):
        before.setdefault(other, []).append((one, instance.links[number // 2].bandwidth_bytes_per_s))
    found: dict[int, float] = {}
    waiting = [(-math.inf, job.server)]
    while waiting:
        width, node = heapq.heappop(waiting)
        if node not in found:
            found[node] = -width
            for one, bandwidth in before.get(node, ()):
                heapq.heappush(waiting, (max(width, -bandwidth), one))
    return found


def most_rates(instance: GraphInstance) -> list[float]:
    """What the rate of each job is at most, in bytes per second, alone and beside what others must send.

    The widest route of its worst worker; and where a worker has a single way out, or the server a single way in, an
    equal share of that link: each job that must be there has a message or, at a server and where no switch aggregates
    for it, one of every worker.
    """
    rates, always = [], dict[int, int]()
    certain: list[dict[int, int]] = []
    for job in instance.jobs:
        width = widest(instance, job)
        rates.append(min(width[worker] for worker in job.workers))
        certain.append(_certain(instance, job))
        for number, messages in certain[-1].items():
            always[number] = always.get(number, 0) + messages
    for j, arcs in enumerate(certain):
        shares = (instance.links[number // 2].bandwidth_bytes_per_s / always[number] for number in arcs)
        rates[j] = min(rates[j], *shares, math.inf)
    return rates


def _certain(instance: GraphInstance, job: GraphJob) -> dict[int, int]:
    """Arcs that every tree of a job is on, with the least number of its messages there."""
    out: dict[int, list[int]] = {}
    into = []
    for number, (one, other) in may_pass(instance, job):
        out.setdefault(one, []).append(number)
        if other == job.server:
            into.append(number)
    found = {out[worker][0]: 1 for worker in job.workers if len(out[worker]) == 1}
    if len(into) == 1:
        found[into[0]] = len(job.workers) if _cannot_aggregate(instance, job) else 1
    return found


def _most_rates(instance: GraphInstance) -> float:
    """Jobs that share a server's node are bounded together, each job once."""
    single = most_rates(instance)
    width = _width(instance)
    groups: dict[int, list[int]] = {}
    for j, job in enumerate(instance.jobs):
        groups.setdefault(job.server, []).append(j)
    total = [min(_total(single[j] for j in members), width[server]) for server, members in groups.items()]
    return _total(total)
