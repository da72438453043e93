"""Branch and bound over the neighbours of the servers, for links of any kind."""

import dataclasses
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any, ClassVar

from ddlopt.certificates.topology.format import MOST_LINKS, MOST_SERVERS, MOST_SETS, DesignCertificate
from ddlopt.frontier.topology.blocks.bounds import congestion_bounds
from ddlopt.frontier.topology.branch_and_bound.integer_instance import number_of_sets
from ddlopt.frontier.topology.branch_and_bound.search import Search
from ddlopt.models.errors import InfeasibleError, NoSolutionError, OptionError
from ddlopt.models.topology import TopologyDesign, TopologyInstance
from ddlopt.solvers.certify import MethodOutput
from ddlopt.solvers.contracts import Limits, ProgressCallback, Result
from ddlopt.solvers.heuristic import CertifiedMethod, Clock
from ddlopt.solvers.topology.link_exchange.link_exchange import LinkExchange


@dataclass(frozen=True)
class BranchAndBound(CertifiedMethod, uses=("threads", "seed", "start")):
    r"""Proves the optimum over all links, rings and routes by pruning the neighbour sets that each server may have.

    A node of the tree allows each server some sets of neighbours (multisets, where links may be parallel). It is
    pruned by arc lengths whose metric inequality no design of the node satisfies; the bound splits into one minimum
    for each server over its own sets, with what its neighbours can reach limited by their degree, and sets of
    neighbours that are too dear for any better design are struck off on the way. The bound is stated in
    :mod:`ddlopt.certificates.topology.check`. Lengths, and prices of the degrees, come from the parent and are
    improved by a few supergradient steps towards a total of zero (Polyak's rule), rounded to whole numbers: all that
    decides is exact. The search branches on the server with the fewest sets left.

    Nodes that automorphisms of the instance take to others are searched once: partial designs are compared by a
    canonical numbering of the servers. The list of open nodes is kept by bound, and each taken from it is searched
    depth first for a tenth of a second or so, so that the least bound on the list holds at any time. The kernels
    release Python's lock; with several threads, that many are at work in one process and share the incumbent.

    The metric inequality is that of maximum concurrent flow (Shahrokhi and Matula, J. ACM 37(2), 1990); the partial
    bound, the prices and the search are ours.

    Parameters
    ----------
    opening : float
        Effort of ``link-exchange``, which gives the first incumbent where no start is given.
    rounds : int
        Supergradient steps at each node.
    executor : concurrent.futures.Executor, optional
        Threads to search in; by default as many as the limits allow.
    """

    opening: float = 0.3
    rounds: int = 12
    executor: Executor | None = None

    proves_infeasible: ClassVar[bool] = True

    kernels: ClassVar[tuple[str, ...]] = (
        "ddlopt.frontier.topology.branch_and_bound.tree",
        "ddlopt.certificates.topology.hops.canonical_kernel",
    )

    def __post_init__(self) -> None:
        if not self.opening > 0:
            raise OptionError(f"opening must be positive, got {self.opening}")
        if self.rounds < 1:
            raise OptionError(f"rounds must be at least 1, got {self.rounds}")

    @property
    def name(self) -> str:
        """``branch-and-bound``."""
        return "branch-and-bound"

    def kernels_for(self, instance: TopologyInstance) -> tuple[str, ...]:
        """Its own, and those of the opening, which also has the kernel that routes leaves."""
        return (*self.kernels, *LinkExchange().kernels_for(instance))

    def refuses(self, instance: TopologyInstance) -> str | None:
        """More neighbour sets than can be kept."""
        n, d = instance.servers, instance.degree
        if n > MOST_SERVERS or n * d > MOST_LINKS:
            return f"there are {n} servers with {d} links; at most {MOST_SERVERS} servers and {MOST_LINKS} links"
        if number_of_sets(instance) > MOST_SETS:
            return f"each server has {number_of_sets(instance)} sets of neighbours to choose from; at most {MOST_SETS}"
        return None

    def find(self, instance: TopologyInstance, limits: Limits, seed: int, clock: Clock, start: Any) -> MethodOutput:
        """The best design and the bound; details: nodes, evaluations, designs routed, images, the first incumbent."""
        return _answer(self._search(instance, limits, seed, clock, start, False))

    def certified(
        self,
        instance: TopologyInstance,
        limits: Limits,
        seed: int = 0,
        progress: ProgressCallback | None = None,
        start: TopologyDesign | None = None,
    ) -> tuple[Result, DesignCertificate]:
        """The result, and what :func:`~ddlopt.certificates.topology.check_certificate` takes.

        The certificate's bound is what the tree proves; the result's may be a better combinatorial one.

        Raises
        ------
        InfeasibleError
            If the degree leaves a server without a way to others, of which there is no certificate.
        """
        recording = _Recording(self.opening, self.rounds, self.executor)
        result = recording.solve(instance, limits, seed, progress, start)
        if not recording.kept:
            raise InfeasibleError(result.message)
        return result, recording.kept[0]

    def _search(
        self, instance: TopologyInstance, limits: Limits, seed: int, clock: Clock, start: Any, recording: bool
    ) -> Search:
        search = Search(instance, clock, self.rounds, recording)
        search.know(max(congestion_bounds(instance).values()))
        if start is not None:
            search.offer(start)
        else:
            share = None if limits.time_s is None else 0.3 * limits.time_s
            opening = LinkExchange(self.opening).solve(instance, dataclasses.replace(limits, time_s=share), seed)
            if isinstance(opening.solution, TopologyDesign):
                search.offer(opening.solution)
        search.first_bytes = search.best_bytes
        own = self.executor is None and limits.threads > 1
        with ThreadPoolExecutor(limits.threads) if own else nullcontext(self.executor) as threads:
            search.run(threads, limits.threads)
        return search


def _answer(search: Search) -> MethodOutput:
    """What a search found and proved."""
    instance = search.instance
    if search.best is None:
        if search.complete:  # every node was closed by a bound or pruned, and no leaf had a design
            raise InfeasibleError(f"'{instance.name}': no links that its ports allow carry everything")
        raise NoSolutionError(f"'{instance.name}': no links were found over which everything can be sent")
    details = {**search.figures, "first_bytes": search.first_bytes, "proven_bytes": search.proven_bytes}
    return MethodOutput(search.best, details, instance.iteration_time_s(search.proven_bytes))


@dataclass(frozen=True)
class _Recording(BranchAndBound):
    """The same, keeping the certificate."""

    kept: list[DesignCertificate] = dataclasses.field(default_factory=list)

    def find(self, instance: TopologyInstance, limits: Limits, seed: int, clock: Clock, start: Any) -> MethodOutput:
        """See :class:`BranchAndBound`."""
        search = self._search(instance, limits, seed, clock, start, True)
        self.kept.append(search.certificate())
        return _answer(search)
