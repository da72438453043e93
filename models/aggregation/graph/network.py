"""What formulations and methods for aggregation networks share: arcs of a job, workers at one place, routes."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from ddlopt.models.aggregation.graph.bounds import distances, may_pass, widest
from ddlopt.models.aggregation.graph.instance import GraphInstance, GraphJob
from ddlopt.models.errors import SolverError
from ddlopt.models.units import unit_of

Arc = tuple[int, int]


@dataclass(frozen=True)
class JobNetwork:
    """Where the messages of a job can be, once hosts with a single way out have sent theirs.

    Parameters
    ----------
    job : GraphJob
    able : tuple of int
        Nodes with slots enough to aggregate.
    groups : mapping of int to int
        Nodes where messages of workers start, and how many: workers that only have a link to the same node count there.
    sent : tuple of (int, int)
        Arcs that carry one message of the job whatever is decided: the ways out of those workers.
    arcs : tuple of (int, int)
        All others that may carry some.
    """

    job: GraphJob
    able: tuple[int, ...]
    groups: Mapping[int, int]
    sent: tuple[Arc, ...]
    arcs: tuple[Arc, ...]

    @property
    def direct(self) -> int:
        """Workers with a link to the server only."""
        return sum(arc[1] == self.job.server for arc in self.sent)

    @property
    def nodes(self) -> tuple[int, ...]:
        """Those with arcs, the server excepted, and all where messages start."""
        found = {node for arc in self.arcs for node in arc} | set(self.groups)
        return tuple(sorted(found - {self.job.server}))


def job_network(instance: GraphInstance, job: GraphJob) -> JobNetwork:
    """The arcs and the groups of a job."""
    able = tuple(v for v, node in enumerate(instance.nodes) if node.slots >= job.slots and v != job.server)
    arcs = [arc for _, arc in may_pass(instance, job)]
    out: dict[int, list[Arc]] = {}
    for arc in arcs:
        out.setdefault(arc[0], []).append(arc)
    sent, groups = [], Counter[int]()
    for worker in job.workers:
        alone = not instance.nodes[worker].forwards and worker not in able
        if alone and len(out[worker]) == 1 and out[worker][0][1] not in job.workers:
            sent.append(out[worker][0])
            if out[worker][0][1] != job.server:
                groups[out[worker][0][1]] += 1
        else:
            groups[worker] += 1
    left = {arc[0] for arc in sent}
    rest = tuple(arc for arc in arcs if arc[0] not in left)
    return JobNetwork(job, able, dict(sorted(groups.items())), tuple(sent), rest)


def bandwidth(instance: GraphInstance, arc: Arc) -> float:
    """Bytes per second of an arc."""
    return instance.links[instance.arc_of[arc] // 2].bandwidth_bytes_per_s


def time_unit_s(instance: GraphInstance) -> float:
    """Time in which models count, a power of two near what no trees are better than.

    That is the longest of the workers' shortest routes, in time, for utilization; for congestion the time of a message
    on the narrowest link of each worker's widest route. A slow link that nobody must take does not count.
    """
    if instance.goal == "utilization":
        return unit_of(max(_longest_s(instance, job) for job in instance.jobs), parts=1)
    widths = [(job, widest(instance, job)) for job in instance.jobs]
    return unit_of(max(job.gradient_bytes / min(width[w] for w in job.workers) for job, width in widths), parts=1)


def rate_unit(instance: GraphInstance) -> float:
    """Bytes per second in which models count: near the most that a job has by itself, of any of them."""
    widths = [(job, widest(instance, job)) for job in instance.jobs]
    return unit_of(max(min(width[worker] for worker in job.workers) for job, width in widths), parts=1)


def _longest_s(instance: GraphInstance, job: GraphJob) -> float:
    arcs = may_pass(instance, job)
    cost_s = {arc: job.gradient_bytes / instance.links[number // 2].bandwidth_bytes_per_s for number, arc in arcs}
    far = distances(cost_s, job.server)
    return max(far[worker] for worker in job.workers)


def routes_of(job: GraphJob, messages: Mapping[Arc, int], ended: Mapping[int, int]) -> tuple[tuple[int, ...], ...]:
    """Routes with these numbers of messages on arcs, and of messages that end in switches, or with fewer.

    Walks are laid one by one. As long as switches then send to each other in a circle, a message of the circle changes
    places, where they meet, with one that is next on a way to the server. Loops are cut off in the end.

    Raises
    ------
    SolverError
        If no routes have these numbers.
    """
    left = Counter(dict(messages))
    walks = _laid(job, left, ended)
    for _ in range(len(messages) * (len(walks) + 1)):
        circle = _circle(job, walks)
        if not circle:
            return tuple(tuple(_without_loops(walk)) for _, walk in sorted(walks.items()))
        _swap(job, walks, left, circle)
    raise SolverError(f"messages of job '{job.name}' run in a circle")


def _laid(job: GraphJob, left: Counter[Arc], ended: Mapping[int, int]) -> dict[int, list[int]]:
    """A walk from each worker and each switch where one ends; what remains in ``left`` are circulations."""
    ends = Counter(dict(ended))
    walks: dict[int, list[int]] = {}
    waiting = sorted(job.workers)
    for start in waiting:
        walk = [start]
        while walk[-1] != job.server and (len(walk) == 1 or ends[walk[-1]] <= 0):
            walk.append(_step(job, left, walk[-1]))
        ends[walk[-1]] -= 1
        walks[start] = walk
        if walk[-1] != job.server and walk[-1] not in waiting:
            waiting.append(walk[-1])
    return walks


def _step(job: GraphJob, left: Counter[Arc], node: int) -> int:
    for arc, number in left.items():
        if arc[0] == node and number > 0:
            left[arc] -= 1
            return arc[1]
    raise SolverError(f"a message of job '{job.name}' stays in node {node}")


def _without_loops(walk: Sequence[int]) -> list[int]:
    short: list[int] = []
    for node in walk:
        if node in short:
            del short[short.index(node) :]
        short.append(node)
    return short


def _circle(job: GraphJob, walks: Mapping[int, list[int]]) -> list[int]:
    """Starts of walks that lead from one to the next and back."""
    for start in walks:
        seen = [start]
        while walks[seen[-1]][-1] != job.server:
            following = walks[seen[-1]][-1]
            if following in seen:
                return seen[seen.index(following) :]
            seen.append(following)
    return []


def _swap(job: GraphJob, walks: dict[int, list[int]], left: Counter[Arc], circle: Sequence[int]) -> None:
    """Exchange the rests of a walk of the circle and of another one, next on a way to the server."""
    carriers: dict[Arc, int | None] = {arc: None for arc, number in left.items() if number > 0}
    carriers |= {arc: start for start, walk in walks.items() for arc in pairwise(walk)}
    inside = {node: start for start in circle for node in walks[start][:-1]}
    way = _way(set(inside), carriers, job.server)
    if way is None:
        raise SolverError(f"messages of job '{job.name}' do not reach its server, node {job.server}")
    mine, other = inside[way[0]], carriers[way]
    here = walks[mine].index(way[0])
    if other is None:
        # A circulation goes around here: the walk takes it on.
        loop = [way[0], way[1]]
        left[way] -= 1
        while loop[-1] != way[0]:
            loop.append(_step(job, left, loop[-1]))
        walks[mine][here : here + 1] = loop
        return
    there = next(place for place, arc in enumerate(pairwise(walks[other])) if arc == way)
    walks[mine], walks[other] = walks[mine][:here] + walks[other][there:], walks[other][:there] + walks[mine][here:]


def _way(inside: set[int], carriers: Mapping[Arc, int | None], server: int) -> Arc | None:
    """The first arc of a shortest way from nodes of the circle to the server."""
    first: dict[int, Arc | None] = dict.fromkeys(sorted(inside))
    waiting = sorted(inside)
    for node in waiting:
        for arc in carriers:
            if arc[0] == node and arc[1] not in first:
                first[arc[1]] = first[node] or arc
                waiting.append(arc[1])
    return first.get(server)
