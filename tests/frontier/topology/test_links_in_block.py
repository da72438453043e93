"""Links in one of several symmetric blocks: no load of a design is refuted, and second links are links."""

import numpy as np
import pytest
from volume import for_each, slow

import ddlopt
from ddlopt import instances
from ddlopt.frontier.topology.formulations.links_in_block import LinksInBlock, bytes_once
from ddlopt.models.codesign.job import job_of
from ddlopt.models.topology import AllReduceGroup, TopologyInstance
from ddlopt.solvers.backends.highs import Highs
from ddlopt.solvers.contracts import Limits, Status
from ddlopt.solvers.exact import build_model

BLOCKS = (0, 0, 0, 1, 1, 1)


def _job(groups, degree=2, parallel_links=True, traffic=None):
    return TopologyInstance(
        name="blocks-of-three",
        source="made for this test",
        servers=6,
        degree=degree,
        link_bandwidth_bytes_per_s=1.0,
        allreduce_groups=tuple(AllReduceGroup(members=members, gradient_bytes=size) for members, size in groups),
        traffic_bytes=np.kron(np.eye(2), np.ones((3, 3)) - np.eye(3)) if traffic is None else traffic,
        parallel_links=parallel_links,
    )


def _drawn(seed):
    rng = np.random.default_rng(seed)
    sizes = rng.choice([1.0, 2.0, 3.0, 5.0], 5)
    groups = [(members, sizes[0]) for members in ((0, 1, 2), (3, 4, 5))]
    groups += [((u, u + 3), sizes[1]) for u in range(3)]
    if rng.random() < 0.5:
        groups.append(((0, 1, 3, 4), sizes[2]))
    if rng.random() < 0.3:
        groups += [((u, u + 1), sizes[3]) for u in (0, 3)]
    if rng.random() < 0.3:
        groups.append((tuple(range(6)), sizes[4]))
    traffic = np.kron(np.eye(2), rng.choice([0.0, 0.5, 1.0, 2.0], (3, 3)) * (1 - np.eye(3)))
    if rng.random() < 0.5:
        traffic += np.kron([[0, 1], [1, 0]], np.eye(3)) * rng.choice([0.5, 2.0])
    return _job(groups, int(rng.integers(1, 4)), bool(rng.random() < 0.7), traffic)


def _possible(job, load, labels=BLOCKS, fixed=None):
    program = LinksInBlock(load, labels)
    assert program.refuses(job) is None
    model = build_model("topology", program, job)
    for port, values in (fixed or {}).items():
        for key, value in values.items():
            getattr(model.topology, port)[key].fix(value)
    return Highs({"mip_max_improving_sols": 1}).solve(model, Limits(60), 0).status is not Status.INFEASIBLE


@for_each("seed", [4, *map(slow, set(range(60)) - {4})])
def test_no_load_of_a_design_is_refuted(seed):
    job = _drawn(seed)
    least = ddlopt.solve(job, "exact", time_limit=60).objective
    assert _possible(job, least * (1 + 1e-6))
    assert not _possible(job, 0.999 * bytes_once(job) / (job.servers * job.degree))


def test_second_links_are_links():
    """Rings of three that take two links a hop: three servers with four ports each have room for no more."""
    groups = [((0, 1, 2), 2.9), ((3, 4, 5), 2.9)]
    apart = _job(groups, degree=4, parallel_links=False)
    together = _job(groups, degree=4)
    least = ddlopt.solve(together, "exact", time_limit=60).objective
    assert least < 0.99 * ddlopt.solve(apart, "exact", time_limit=60).objective
    assert _possible(together, least * (1 + 1e-6))
    assert not _possible(apart, least * (1 + 1e-6))


@pytest.mark.parametrize("change", ["duplex", "groups", "traffic", "labels"])
def test_blocks_have_to_be_symmetric(change):
    groups, labels = [((0, 1, 2), 1.0), ((3, 4, 5), 1.0)], BLOCKS
    job = _job(groups)
    if change == "duplex":
        job = job.model_copy(update={"optics": "duplex"})
    elif change == "groups":
        job = _job([((0, 1, 2), 1.0), ((3, 4, 5), 1.1)])
    elif change == "traffic":
        job = _job(groups, traffic=np.arange(36.0).reshape(6, 6) * (1 - np.eye(6)))
    else:
        labels = (0, 0, 1, 1, 1, 1)
    assert LinksInBlock(1.0, labels).refuses(job)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["candle-n128-d4", "candle-n128-d8", "vgg16-n32-d4", "vgg16-n64-d4"])
def test_links_of_the_best_designs_are_possible_at_their_load(name):
    instance, plan = instances.load(f"codesign/{name}"), instances.best(f"codesign/{name}")
    job = job_of(instance, plan.choices(instance))
    time_s = instances.record(f"codesign/{name}").found.objective
    load = (time_s - job.compute_s) * job.link_bandwidth_bytes_per_s
    labels = tuple(s // 8 for s in range(job.servers))
    links = {"link": {(u, v): 0 for u in range(8) for v in range(8) if u != v}}
    links |= {port: dict.fromkeys(range(8), 0) for port in ("out", "into")}
    for i, j, count in plan.design.links:
        if i < 8 and j < 8:
            links["link"][i, j] += count
        elif i < 8:
            links["out"][i] += count
        elif j < 8:
            links["into"][j] += count
    assert _possible(job, load * (1 + 1e-6), labels, links)
    if name.startswith("candle"):
        assert not _possible(job, load * (1 - 2e-4), labels)
