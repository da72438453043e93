"""A bound by all choices of strategies that come into question: each is refuted by whole links, or holds it down."""

import heapq
import math
from collections.abc import Iterator

import numpy as np

from ddlopt.models.codesign.classes import SentAlike, classes_below
from ddlopt.models.codesign.instance import CodesignInstance
from ddlopt.models.codesign.job import job_sending
from ddlopt.models.codesign.one_block import blocks_of
from ddlopt.models.codesign.tables import tables_of
from ddlopt.models.errors import InfeasibleError
from ddlopt.models.tolerances import FEASIBILITY_TOL, SOLVER_TOL
from ddlopt.models.topology.bounds import congestion_bounds
from ddlopt.models.topology.formulations.links_out import LinksOut
from ddlopt.models.topology.instance import TopologyInstance
from ddlopt.solvers.backends.highs import Highs
from ddlopt.solvers.contracts import Limits, Status
from ddlopt.solvers.exact import build_model
from ddlopt.solvers.heuristic import Clock

_MOST_CLASSES = 1000
"""Of choices; refuting one takes seconds, and of many that are alike there are far more soon."""
_BLOCK_SERVERS = 4
"""Up to so many servers have whole links before all have: it takes a second, and mostly that is enough."""
_FIRST = {"mip_max_improving_sols": 1}
"""Any solution says that the load is not refuted."""


def bound_by_classes(instance: CodesignInstance, target_s: float, seed: int, clock: Clock) -> float:
    """Seconds that no plan gets below, at most ``target_s``; 0 where there are too many choices.

    Those that may take less (:func:`.classes_below`) have a topology problem each, and a combinatorial bound for it.
    The one of least bound comes first: if no design has the load with which it takes ``target_s``
    (:class:`~ddlopt.models.topology.formulations.links_out.LinksOut`, first with the links of one block of servers,
    then with all), it is none of interest; otherwise, or if the time is up, its bound is that for all.
    """
    classes = classes_below(instance, target_s, _MOST_CLASSES)
    if classes is None:
        return 0.0
    left: list[tuple[float, int, TopologyInstance | None]] = []
    for place, each in enumerate(classes):
        bound_s, job = _closed_form(instance, each)
        if bound_s < target_s:
            left.append((bound_s, place, job))
    heapq.heapify(left)
    while left:
        bound_s, _, job = left[0]
        if job is None or clock.expired:
            return bound_s
        load = (target_s - job.compute_s) * job.link_bandwidth_bytes_per_s * (1 + SOLVER_TOL)
        if not _refuted(instance, job, load, seed, clock):
            return bound_s
        heapq.heappop(left)
    return target_s


def _closed_form(instance: CodesignInstance, sent: SentAlike) -> tuple[float, TopologyInstance | None]:
    job = job_sending(instance, *sent)
    try:
        load = 0.0 if job is None else max(congestion_bounds(job).values())
    except InfeasibleError:
        load = math.inf
    return instance.iteration_time_s(sent.compute_s, load), job


def _refuted(instance: CodesignInstance, job: TopologyInstance, load: float, seed: int, clock: Clock) -> bool:
    """Whether no design has so few bytes on its busiest link."""
    for servers in _some_servers(instance, job):
        model = build_model(job.family, LinksOut(load, servers), job)
        limits = Limits(None if math.isinf(clock.left_s) else max(clock.left_s, 1e-3))
        with clock.lending_ctrl_c():
            outcome = Highs(_FIRST).solve(model, limits, seed)
        clock.interrupted |= outcome.interrupted
        if outcome.status is Status.INFEASIBLE or clock.expired:
            return outcome.status is Status.INFEASIBLE
    return False


def _some_servers(instance: CodesignInstance, job: TopologyInstance) -> Iterator[tuple[int, ...]]:
    """Blocks that look alike to the job, large ones first, and then all servers."""
    for servers, image in blocks_of(tables_of(instance), _BLOCK_SERVERS):
        if _looks_alike(job, image):
            yield servers
    yield tuple(range(job.servers))


def _looks_alike(job: TopologyInstance, image: tuple[int, ...]) -> bool:
    """Whether a permutation of the servers takes groups to groups with as many bytes, and traffic to itself."""
    sizes = {frozenset(each.members): each.gradient_bytes for each in job.allreduce_groups}
    moved = {frozenset(image[s] for s in members): size for members, size in sizes.items()}
    traffic, where = job.traffic_bytes, np.array(image)
    close = FEASIBILITY_TOL * float(traffic.max())
    return sizes == moved and bool(np.allclose(traffic[np.ix_(where, where)], traffic, rtol=0.0, atol=close))
