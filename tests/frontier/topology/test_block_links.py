"""Links that are the same in every block: drawn with the right degrees, and as good as the bound for jobs of blocks."""

from collections import Counter
from itertools import islice

import numpy as np
import pytest

from ddlopt import instances
from ddlopt.frontier.topology.blocks.bounds import congestion_bounds
from ddlopt.frontier.topology.symmetric_rings.block_links import BlockLinks, block_links
from ddlopt.frontier.topology.symmetric_rings.orbit_design import balance_of
from ddlopt.frontier.topology.symmetric_rings.sight import sights
from ddlopt.models.codesign.job import job_of
from ddlopt.models.topology import TopologyInstance, evaluate
from ddlopt.solvers.contracts import Limits
from ddlopt.solvers.heuristic import Clock
from ddlopt.solvers.topology.balance.path_kernels import seed_kernels


def _job(name: str) -> TopologyInstance:
    instance = instances.load(f"codesign/{name}")
    return job_of(instance, instances.best(f"codesign/{name}").choices(instance))


def _search(job: TopologyInstance, seed: int) -> tuple[BlockLinks, float]:
    bound = max(congestion_bounds(job).values())
    found = block_links(job, list(islice(sights(job), 8)), bound, np.random.default_rng(seed))
    assert found is not None
    return found, bound


def test_links_take_all_ports_and_lead_to_the_own_place_in_the_next_block():
    job = _job("vgg16-n32-d4")
    search, _ = _search(job, 0)
    for links in islice(search.drawn(), 5):
        out, into = Counter(u for u, _, _ in links), Counter(v for _, v, _ in links)
        assert set(out.values()) == set(into.values()) == {job.degree}
        inside = [(u, v) for u, v, blocks in links if blocks == 0]
        assert len(set(inside)) == len(inside)
        assert all(u != v for u, v in inside)
        assert {(u, u, 1) for u in range(8)} <= set(links)


def test_jobs_whose_pairs_in_a_block_differ_have_no_such_links():
    job = _job("candle-n16-d4")
    assert block_links(job, list(islice(sights(job), 8)), 1.0, np.random.default_rng(0)) is None


@pytest.mark.slow
def test_a_job_with_eight_ports_is_solved_from_nothing():
    """``vgg16-n128-d8``: 22 of 64 links lead out of a block, which are no multiple of its servers."""
    job = _job("vgg16-n128-d8")
    seed_kernels(0)
    search, bound = _search(job, 0)
    program, load, judged = search.best(Clock(Limits(60), None), 300, bound * 1.001, np.inf)
    assert program is not None
    assert judged <= 300
    assert load <= bound * 1.001
    design = balance_of(program).design()
    assert evaluate(job, design).objective == pytest.approx(job.iteration_time_s(load), rel=1e-6)


@pytest.mark.slow
def test_second_links_come_from_a_program():
    """``candle-n128-d8``: a block takes 76 hops for its 56 pairs, as servers of a cell have two links."""
    job = _job("candle-n128-d8")
    seed_kernels(0)
    search, bound = _search(job, 0)
    for links in search.laid_out(Clock(Limits(), None)):
        out, into = Counter(u for u, _, _ in links), Counter(v for _, v, _ in links)
        assert set(out.values()) == set(into.values()) == {job.degree}
        assert max(Counter(links).values()) > 1
    search, bound = _search(job, 0)
    program, load, _ = search.best(Clock(Limits(120), None), 3, bound, np.inf)
    assert load <= bound * 1.003
    assert evaluate(job, balance_of(program).design()).objective == pytest.approx(job.iteration_time_s(load), rel=1e-6)
