"""A bound over all load classes: each is excluded by whole links of some servers, or holds the bound down."""

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from ddlopt.frontier.codesign.classes import LoadClass, classes_below
from ddlopt.frontier.codesign.joint.exclusion import Blocks, infeasible
from ddlopt.frontier.codesign.joint.open_bound import bound_by_open_parts
from ddlopt.frontier.codesign.joint.open_links import OpenPart, Options
from ddlopt.frontier.codesign.open_layers import needs_of, nothing_open
from ddlopt.frontier.engines.best_first import OpenNodes
from ddlopt.frontier.topology.blocks.block_bound import partitions
from ddlopt.frontier.topology.blocks.bounds import congestion_bounds
from ddlopt.frontier.topology.formulations.links_in_block import LinksInBlock
from ddlopt.models.codesign.instance import CodesignInstance
from ddlopt.models.codesign.job import job_sending
from ddlopt.models.errors import InfeasibleError
from ddlopt.models.tolerances import SOLVER_TOL
from ddlopt.models.topology.instance import TopologyInstance
from ddlopt.solvers.contracts import Limits
from ddlopt.solvers.exact import build_model
from ddlopt.solvers.heuristic import Clock


@dataclass(frozen=True)
class Effort:
    """How many classes are listed, and for how many servers.

    Parameters
    ----------
    classes : int
        Excluding one takes seconds, and where many layers may take many strategies there are far more than these.
    listed_servers : int
        Servers up to which classes are listed: beyond, closed forms of all of them take too long.
    servers : int
        Servers up to which a program may have links to all others; beyond, it takes minutes.
    """

    classes: int = 2000
    listed_servers: int = 256
    servers: int = 16


_EFFORT = Effort()


def excludable(job: TopologyInstance | None) -> bool:
    """Whether there is a program that may exclude such jobs: they are small, or have symmetric blocks of servers."""
    if job is None or job.servers > _EFFORT.listed_servers:
        return False
    return job.servers <= _EFFORT.servers or any(_in_blocks(job, math.inf))


def bound_by_classes(
    instance: CodesignInstance, target_s: float, seed: int, clock: Clock, known_s: float = 0.0
) -> float:
    """Seconds that no plan takes less than, at most ``target_s``; 0 where there are too many classes.

    Every load class that may take less (:func:`.classes_below`) is a topology problem with a combinatorial bound. The
    class of least bound comes first. Where programs prove that no design serves it in ``target_s``, the next class
    follows; otherwise, or if the time is up, its bound holds for all plans. The programs have the links in one of
    several symmetric blocks (:class:`~ddlopt.frontier.topology.formulations.links_in_block.LinksInBlock`) and, for few
    servers, those out of a block, then those of all servers (:func:`.links_of_block`).

    Where there are too many classes, as many embedding tables can each be split differently, the strategies of tables
    are left open (:func:`.bound_by_open_parts`). That begins with ``known_s``, a bound for all plans, and takes at most
    half of the time.
    """
    classes = classes_below(instance, target_s, _EFFORT.classes)
    if classes is None:
        half = Clock(Limits(clock.part(0.5), clock.gap), None)
        bound_s = bound_by_open_parts(instance, target_s, seed, half, known_s)
        clock.interrupted |= half.interrupted
        return bound_s
    blocks = Blocks(instance)
    left: OpenNodes[tuple[LoadClass, TopologyInstance | None]] = OpenNodes()
    for each in classes:
        if clock.expired:
            return 0.0
        bound_s, job = _closed_form(instance, each, target_s)
        if bound_s < target_s:
            left.push(bound_s, (each, job))
    while left:
        bound_s, (sent, job) = left.first()
        if job is None or clock.expired:
            return bound_s
        if not _excluded(blocks, sent, job, target_s, seed, clock):
            return bound_s
        left.pop()
    return target_s


def _closed_form(instance: CodesignInstance, sent: LoadClass, target_s: float) -> tuple[float, TopologyInstance | None]:
    job = job_sending(instance, *sent)
    try:
        load = 0.0 if job is None else max(congestion_bounds(job, _load(job, target_s)).values())
    except InfeasibleError:
        load = math.inf
    return instance.iteration_time_s(sent.compute_s, load), job


def _load(job: TopologyInstance, time_s: float) -> float:
    """Bytes on the busiest link of an iteration that takes so long."""
    return (time_s - job.compute_s) * job.link_bandwidth_bytes_per_s


def _excluded(blocks: Blocks, sent: LoadClass, job: TopologyInstance, target_s: float, seed: int, clock: Clock) -> bool:
    """Whether it is proven that no design serves the job in time."""
    for program in _in_blocks(job, _load(job, target_s) * (1 + SOLVER_TOL)):
        if (found := infeasible(build_model(job.family, program, job), seed, clock)) or clock.expired:
            return found
    if job.servers > _EFFORT.servers:
        return False
    needs = needs_of(blocks.tables, sent.reduced, sent.moved, np.full(job.servers, sent.compute_s))
    part = OpenPart(needs, Options(blocks.instance, nothing_open(blocks.tables)))
    return blocks.exclude(part, target_s, seed, clock, all_too=True)


def _in_blocks(job: TopologyInstance, load: float) -> Iterator[LinksInBlock]:
    """Programs for all partitions into symmetric blocks, large blocks first."""
    for labels in sorted(partitions(job), key=lambda labels: int(labels.max())):
        program = LinksInBlock(load, tuple(labels.tolist()))
        if program.refuses(job) is None:
            yield program
