"""A bound by all choices of strategies that come into question: each is refuted by whole links, or holds it down."""

import itertools
import math
from collections.abc import Iterator

import numpy as np

from ddlopt.frontier.codesign.classes import SentAlike, classes_below
from ddlopt.frontier.codesign.joint.open_bound import bound_by_open_parts, infeasible
from ddlopt.frontier.codesign.one_block import blocks_of
from ddlopt.frontier.engines.best_first import OpenNodes
from ddlopt.frontier.topology.blocks.block_bound import partitions
from ddlopt.frontier.topology.blocks.bounds import congestion_bounds
from ddlopt.frontier.topology.formulations.links_in_block import LinksInBlock
from ddlopt.frontier.topology.formulations.links_out import LinksOut
from ddlopt.models.codesign.instance import CodesignInstance
from ddlopt.models.codesign.job import job_sending
from ddlopt.models.codesign.tables import tables_of
from ddlopt.models.errors import InfeasibleError
from ddlopt.models.tolerances import FEASIBILITY_TOL, SOLVER_TOL
from ddlopt.models.topology.instance import TopologyInstance
from ddlopt.solvers.contracts import Limits
from ddlopt.solvers.exact import build_model
from ddlopt.solvers.heuristic import Clock

_MOST_CLASSES = 2000
"""Of choices; refuting one takes seconds, and of many that are alike there are far more soon."""
_MOST_SERVERS, _MOST_LISTED = 16, 256
"""Up to so many servers links out of some or all of them are asked for, with routes to all others; choices listed."""
_LEAST_S = 1e-3
"""For a part of the time when nothing is left of it: a limit is a positive number."""
_BLOCK_SERVERS = 4
"""Up to so many servers have whole links before all have: it takes a second, and mostly that is enough."""


def refutable(job: TopologyInstance | None) -> bool:
    """Whether there is a test for jobs such as this one: they are small, or blocks of servers look alike."""
    if job is None or job.servers > _MOST_LISTED:
        return False
    return job.servers <= _MOST_SERVERS or any(_in_blocks(job, math.inf))


def bound_by_classes(
    instance: CodesignInstance, target_s: float, seed: int, clock: Clock, known_s: float = 0.0
) -> float:
    """Seconds that no plan gets below, at most ``target_s``; 0 where there are too many choices.

    Where many tables can each be split its own way, their strategies are left open (:func:`.bound_by_open_parts`, which
    begins with ``known_s``, a bound for all plans, and takes half of the time: it goes on as long as it may).

    Those that may take less (:func:`.classes_below`) have a topology problem each, and a combinatorial bound for it.
    The one of least bound comes first: if no design has the load with which it takes ``target_s``, it is none of
    interest; otherwise, or if the time is up, its bound is that for all. What is asked are links in a block of servers
    (:class:`~ddlopt.frontier.topology.formulations.links_in_block.LinksInBlock`), and up to 16 servers those out of a
    block, and of all (:class:`~ddlopt.frontier.topology.formulations.links_out.LinksOut`).
    """
    classes = classes_below(instance, target_s, _MOST_CLASSES)
    if classes is None:
        half = Clock(Limits(None if math.isinf(clock.left_s) else max(clock.left_s / 2, _LEAST_S), clock.gap), None)
        bound_s = bound_by_open_parts(instance, target_s, seed, half, known_s)
        clock.interrupted |= half.interrupted
        return bound_s
    left: OpenNodes[TopologyInstance | None] = OpenNodes()
    for each in classes:
        if clock.expired:
            return 0.0
        bound_s, job = _closed_form(instance, each, target_s)
        if bound_s < target_s:
            left.push(bound_s, job)
    while left:
        bound_s, job = left.first()
        if job is None or clock.expired:
            return bound_s
        if not _refuted(instance, job, _load(job, target_s) * (1 + SOLVER_TOL), seed, clock):
            return bound_s
        left.pop()
    return target_s


def _closed_form(instance: CodesignInstance, sent: SentAlike, target_s: float) -> tuple[float, TopologyInstance | None]:
    job = job_sending(instance, *sent)
    try:
        load = 0.0 if job is None else max(congestion_bounds(job, _load(job, target_s)).values())
    except InfeasibleError:
        load = math.inf
    return instance.iteration_time_s(sent.compute_s, load), job


def _load(job: TopologyInstance, time_s: float) -> float:
    """Bytes on the busiest link of an iteration that takes so long."""
    return (time_s - job.compute_s) * job.link_bandwidth_bytes_per_s


def _refuted(instance: CodesignInstance, job: TopologyInstance, load: float, seed: int, clock: Clock) -> bool:
    """Whether no design has so few bytes on its busiest link."""
    programs: Iterator[LinksInBlock | LinksOut]
    programs = itertools.chain(_in_blocks(job, load), _out_of_some(instance, job, load))
    for program in programs:
        if (found := infeasible(build_model(job.family, program, job), seed, clock)) or clock.expired:
            return found
    return False


def _in_blocks(job: TopologyInstance, load: float) -> Iterator[LinksInBlock]:
    """Programs for all blocks that look alike, large ones first."""
    for labels in sorted(partitions(job), key=lambda labels: int(labels.max())):
        program = LinksInBlock(load, tuple(labels.tolist()))
        if program.refuses(job) is None:
            yield program


def _out_of_some(instance: CodesignInstance, job: TopologyInstance, load: float) -> Iterator[LinksOut]:
    if job.servers <= _MOST_SERVERS:
        yield from (LinksOut(load, servers) for servers in _some_servers(instance, job))


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
