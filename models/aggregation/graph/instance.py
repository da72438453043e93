"""Where gradients are aggregated in a network, and along which routes they travel."""

from functools import cached_property
from typing import ClassVar, Literal, Self

from pydantic import Field, model_validator

from ddlopt.models.aggregation.family import AggregationAnswer, AggregationProblem
from ddlopt.models.contracts import Part, Sense

Goal = Literal["utilization", "congestion", "rates"]


class GraphNode(Part):
    """A host or a switch.

    Parameters
    ----------
    name : str
    slots : int
        Aggregators that it has for all jobs together; a node without any cannot aggregate.
    aggregation_bytes_per_s : float, optional
        What enters its aggregators in a second at most; without, they are never in the way.
    forwards : bool
        Whether messages may pass through it; hosts do not forward.
    """

    name: str
    slots: int = Field(default=0, ge=0)
    aggregation_bytes_per_s: float | None = Field(default=None, gt=0)
    forwards: bool = True


class GraphLink(Part):
    """A cable: full duplex, each direction with a bandwidth of its own size.

    Parameters
    ----------
    ends : (int, int)
        Two nodes.
    bandwidth_bytes_per_s : float
        Of each direction.
    """

    ends: tuple[int, int]
    bandwidth_bytes_per_s: float = Field(gt=0)


class GraphJob(Part):
    """A training job: every worker sends its gradient to the server, and switches may add gradients up on the way.

    Parameters
    ----------
    name : str
    workers : tuple of int
        Nodes, each once.
    server : int
        The node where the sum must arrive; no worker.
    gradient_bytes : float
        What each worker sends in an iteration; a sum of gradients is as large.
    slots : int
        What a switch that aggregates for the job needs.
    """

    name: str
    workers: tuple[int, ...] = Field(min_length=1)
    server: int
    gradient_bytes: float = Field(default=1.0, gt=0)
    slots: int = Field(default=1, ge=1)


class GraphInstance(AggregationProblem):
    r"""Which switches aggregate for which job, and the route of every message.

    A message of a job starts at each worker and at each switch that aggregates for the job. It follows one route, which
    ends at the job's server or at a switch that aggregates for the job; there all messages that end are added up to
    the one that the switch sends. So the messages of a job form a tree whose root is the server. A route visits no node
    twice and passes through nodes that forward only, not through the server; it may pass through a switch that
    aggregates for the job without ending there. A worker that aggregates adds its own gradient and sends one message,
    too. With :math:`m_{ja}`
    messages of job j on arc a (a direction of a link), each of :math:`g_j` bytes, and bandwidth :math:`c_a`, the goals
    are

    *utilization*: the seconds for which links are busy in an iteration, :math:`\sum_a \sum_j g_j m_{ja} / c_a`, are
    minimised;

    *congestion*: the seconds until everything has been sent where all jobs send at once, which is the largest of
    :math:`\sum_j g_j m_{ja} / c_a` over arcs a and :math:`\sum_j g_j n_{jv} / r_v` over switches v with an aggregation
    rate :math:`r_v`, where :math:`n_{jv}` messages of j end at v, is minimised;

    *rates*: jobs share equally what they meet at. All messages of a job flow at one rate :math:`\lambda_j`, which is
    the smallest of :math:`c_a / \sum_k m_{ka}` over the arcs that j uses and of
    :math:`r_v / |\{k : n_{kv} > 0\}|` over the switches that aggregate for j. The sum of rates, in bytes per second,
    is maximised.

    Parameters
    ----------
    nodes : tuple of GraphNode
        Hosts and switches.
    links : tuple of GraphLink
        At most one between two nodes.
    jobs : tuple of GraphJob
        Each with one server.
    goal : {"utilization", "congestion", "rates"}
        The sum of link times, the longest time of a link or switch, or the sum of rates.
    aggregators : int, optional
        Most pairs of a job and a switch that aggregates for it.
    connections : int, optional
        Most messages of a job that may arrive at its server (active connections, the degree of incast).
    merging : bool
        Messages of one job that meet in a node must be aggregated there: at most one message of a job leaves a node,
        and a node other than the server where two or more arrive aggregates for the job.

    References
    ----------
    Messages on trees and both sums over links: R. Segal, C. Avin, G. Scalosub, "SOAR: Minimizing network utilization
    with bounded in-network computing", CoNEXT 2021. Equal shares with forced merging are the rules of the public
    instances of jianglong-nie/INARouting.
    """

    kind: ClassVar[str] = "aggregation network"

    problem: Literal["graph"] = "graph"
    nodes: tuple[GraphNode, ...] = Field(min_length=2)
    links: tuple[GraphLink, ...] = Field(min_length=1)
    jobs: tuple[GraphJob, ...] = Field(min_length=1)
    goal: Goal = "congestion"
    aggregators: int | None = Field(default=None, ge=0)
    connections: int | None = Field(default=None, ge=1)
    merging: bool = False

    @model_validator(mode="after")
    def _check(self) -> Self:
        self._check_links()
        for place, job in enumerate(self.jobs):
            self._check_job(place, job)
        return self

    @property
    def sense(self) -> Sense:
        """Rates are maximised, times minimised."""
        return "maximize" if self.goal == "rates" else "minimize"

    @property
    def objective_unit(self) -> str:
        """Seconds; none for a sum of rates."""
        return "" if self.goal == "rates" else "s"

    @property
    def size(self) -> int:
        """Number of nodes."""
        return len(self.nodes)

    @cached_property
    def arcs(self) -> tuple[tuple[int, int], ...]:
        """Both directions of every link: of link e, arcs 2e and 2e + 1."""
        return tuple(arc for link in self.links for arc in (link.ends, link.ends[::-1]))

    @cached_property
    def arc_of(self) -> dict[tuple[int, int], int]:
        """Number of the arc from one node to another."""
        return {arc: number for number, arc in enumerate(self.arcs)}

    def _check_links(self) -> None:
        count = len(self.nodes)
        first: dict[frozenset[int], int] = {}
        for place, link in enumerate(self.links):
            for node in link.ends:
                if not 0 <= node < count:
                    raise ValueError(f"links[{place}] names node {node}, but there are {count} nodes (0..{count - 1})")
            if link.ends[0] == link.ends[1]:
                raise ValueError(f"links[{place}] leads from node {link.ends[0]} to itself; remove it")
            if first.setdefault(frozenset(link.ends), place) != place:
                raise ValueError(
                    f"links[{place}] joins nodes {link.ends[0]} and {link.ends[1]} again, after "
                    f"links[{first[frozenset(link.ends)]}]; give one link with the sum of their bandwidths"
                )

    def _check_job(self, place: int, job: GraphJob) -> None:
        count, where = len(self.nodes), f"jobs[{place}] ('{job.name}')"
        for node in (*job.workers, job.server):
            if not 0 <= node < count:
                raise ValueError(f"{where} names node {node}, but there are {count} nodes (0..{count - 1})")
        if job.server in job.workers:
            raise ValueError(f"{where} has its server, node {job.server}, among its workers; choose another node")
        if len(set(job.workers)) < len(job.workers):
            twice = next(node for node in job.workers if job.workers.count(node) > 1)
            raise ValueError(f"{where} names worker node {twice} twice; each node is one worker of a job")
        missing = set(job.workers) - self._reaching(job.server)
        if missing:
            raise ValueError(
                f"{where} has worker node {min(missing)} ('{self.nodes[min(missing)].name}'), from which no route "
                f"leads to its server, node {job.server}"
            )

    def _reaching(self, server: int) -> set[int]:
        """Nodes from which a route leads to ``server``."""
        near: dict[int, list[int]] = {}
        for one, other in self.arcs:
            near.setdefault(one, []).append(other)
        found, waiting = {server}, [server]
        while waiting:
            node = waiting.pop()
            if node != server and not self.nodes[node].forwards:
                continue
            fresh = [each for each in near.get(node, []) if each not in found]
            found.update(fresh)
            waiting += fresh
        return found


class AggregationTrees(AggregationAnswer):
    """The routes of every job's messages.

    Parameters
    ----------
    trees : tuple of tuples of routes
        Of each job. A route is a tuple of nodes, from a worker or a switch that aggregates for the job to a switch that
        does, or to the server; each worker and each of these switches starts one.
    """

    kind: ClassVar[str] = "set of aggregation trees"

    problem: Literal["graph"] = "graph"
    trees: tuple[tuple[tuple[int, ...], ...], ...]
