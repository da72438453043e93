"""The bound from all digraphs of a block, and its parts against brute force and a linear program."""

from itertools import permutations, product

import numpy as np
import pytest
from scipy.optimize import linprog

import ddlopt
from ddlopt import instances
from ddlopt.frontier.topology.blocks.block_bound import partitions
from ddlopt.frontier.topology.blocks.bounds import congestion_bounds
from ddlopt.frontier.topology.relays.block import block_of
from ddlopt.frontier.topology.relays.bound import refuted, relay_bound
from ddlopt.frontier.topology.relays.cells import Cell, least_detours, ports_of
from ddlopt.frontier.topology.relays.digraphs import DigraphSearch, Wanted, has_ring
from ddlopt.models.codesign.job import job_of
from ddlopt.models.topology import AllReduceGroup, TopologyInstance


def _brute_force(wanted: Wanted) -> bool:
    """Whether any of all digraphs on three or four vertices will do."""
    n = len(wanted.outward)
    sets = [
        [bits for bits in range(1 << n) if not bits >> v & 1 and bits.bit_count() == wanted.outward[v]]
        for v in range(n)
    ]
    for heads in product(*sets):
        if [sum(bits >> v & 1 for bits in heads) for v in range(n)] != list(wanted.inward):
            continue
        if not all(heads[u] >> v & 1 for u, v in wanted.arcs):
            continue
        far = 0
        for u in range(n):
            near = heads[u] | wanted.relayed[u] | 1 << u
            for v in range(n):
                near |= heads[v] if heads[u] >> v & 1 else 0
            far += n - near.bit_count()
        rings = all(
            any(all(heads[u] >> v & 1 for u, v in zip(c, (*c[1:], c[0]), strict=True)) for c in permutations(ring))
            for ring in wanted.rings
        )
        if far <= wanted.missing and rings:
            return True
    return False


@pytest.mark.parametrize("seed", range(60))
def test_search_finds_a_digraph_exactly_where_there_is_one(seed):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(3, 5))
    ends = rng.permutation(n)
    outward = rng.integers(0, 3, n)
    inward = outward[ends] if rng.random() < 0.8 else rng.integers(0, 3, n)
    pairs = list(permutations(range(n), 2))
    arcs = frozenset(pairs[i] for i in rng.choice(len(pairs), int(rng.integers(0, 3)), replace=False))
    relayed = [int(rng.integers(1 << n)) if rng.random() < 0.3 else 0 for _ in range(n)]
    rings = [tuple(range(n))] if rng.random() < 0.3 else []
    wanted = Wanted(outward.tolist(), inward.tolist(), arcs, relayed, rings, int(rng.integers(0, 4)))
    found = DigraphSearch(10**6).find(wanted)
    assert (found is not None) == _brute_force(wanted)
    if found is not None:
        assert all(has_ring(found, ring) for ring in rings)
        assert all(found[u] >> v & 1 for u, v in arcs)


def test_search_without_steps_finds_nothing_and_says_so():
    search = DigraphSearch(1)
    assert search.find(Wanted([1, 1, 1], [1, 1, 1], frozenset(), [0, 0, 0], [], 9)) is None
    assert search.exhausted


@pytest.mark.parametrize("seed", range(40))
def test_detours_are_those_of_the_linear_program(seed):
    rng = np.random.default_rng(seed)
    cell = Cell(tuple(rng.uniform(0, 3, 2)), float(rng.uniform(0, 3)) * (rng.random() < 0.9))
    out, into = (tuple(rng.integers(0, 4, 2).tolist()) for _ in range(2))
    arcs = tuple(rng.integers(0, 2, 2).tolist())
    (q, r), p = cell.own, cell.shared
    rows = [[1, 1, 0, 0, 0, 0], [-p, 0, -1, 0, 0, 0], [0, -p, 0, -1, 0, 0], [0, -p, 0, 0, -1, 0], [-p, 0, 0, 0, 0, -1]]
    most = [1, out[0] - q - p, out[1] - r - p, into[0] - q - p, into[1] - r - p]
    exact = linprog([p * (1 - arcs[0]), p * (1 - arcs[1]), 0.5, 0.5, 0.5, 0.5], A_ub=rows, b_ub=most).fun
    assert least_detours(cell, out, into, arcs, 1.0) == pytest.approx(exact, abs=1e-9)


def test_ports_of_one_server_cost_half_a_piece_each_and_what_finds_none():
    costs = {
        (*each.outward, *each.inward): each.cost
        for each in ports_of(Cell((1.5,), 0.0), 2, 1.0, 1.0, 2.5)
        if each.elsewhere == each.from_elsewhere == (0,)
    }
    expected = {(x, y): (x + y) / 2 + max(0, 1.5 - x) / 2 + max(0, 1.5 - y) / 2 for x in range(3) for y in range(3)}
    assert costs == pytest.approx(expected)


def _job(**changes: object) -> TopologyInstance:
    """Two blocks of three with a ring each, rings of pairs between them, and one of four servers."""
    blocks = [(0, 1, 2), (3, 4, 5)]
    groups = [AllReduceGroup(members=members, gradient_bytes=1.0) for members in blocks]
    groups += [AllReduceGroup(members=members, gradient_bytes=3.0) for members in zip(*blocks, strict=True)]
    groups.append(AllReduceGroup(members=(0, 1, 3, 4), gradient_bytes=2.0))
    traffic = np.kron(np.eye(2), np.ones((3, 3)) - np.eye(3))
    job = TopologyInstance(
        name="blocks-of-three",
        source="made for this test",
        servers=6,
        degree=2,
        link_bandwidth_bytes_per_s=1.0,
        allreduce_groups=tuple(groups),
        traffic_bytes=traffic,
    )
    return job.model_copy(update=changes)


def test_bound_is_between_the_closed_forms_and_the_optimum():
    known = max(congestion_bounds(_job()).values())
    assert known == pytest.approx(4.708333, abs=1e-6)
    found = relay_bound(_job(), known)
    assert found == pytest.approx(4.833333, abs=1e-6)
    assert found <= ddlopt.solve(_job(), "exact", time_limit=60).objective == pytest.approx(31 / 6)


def test_pairs_without_a_link_take_two():
    """Four servers with two links each, all inside, to the next two: four of the twelve pairs have none."""
    blocks = [(0, 1, 2, 3), (4, 5, 6, 7)]
    rings = [AllReduceGroup(members=members, gradient_bytes=1e-6) for members in (*blocks, *zip(*blocks, strict=True))]
    traffic = np.kron(np.eye(2), np.ones((4, 4)) - np.eye(4))
    job = _job(servers=8, allreduce_groups=tuple(rings), traffic_bytes=traffic)
    (block,) = (each for labels in partitions(job) if (each := block_of(job, labels)) and each.servers == 4)
    assert not refuted(block, 1000.0, 4.01, DigraphSearch(10**6))
    assert refuted(block, 1000.0, 3.99, DigraphSearch(10**6))


@pytest.mark.parametrize("change", ["uneven", "uneven-elsewhere", "outside", "other-block"])
def test_bound_says_nothing_of_jobs_that_it_does_not_know(change):
    job = _job()
    traffic, groups = np.array(job.traffic_bytes), job.allreduce_groups
    if change == "uneven":
        traffic[0, 1] = 1.1
    elif change == "uneven-elsewhere":  # as much in all as in the other block
        traffic[3, 4], traffic[4, 3] = 0.5, 1.5
    elif change == "outside":
        traffic[0, 3] = 0.1
    else:
        groups = (*groups, AllReduceGroup(members=(0, 1), gradient_bytes=0.1))
    assert relay_bound(_job(traffic_bytes=traffic, allreduce_groups=groups), 1.0) == 1.0


@pytest.mark.slow
@pytest.mark.parametrize("name", ["vgg16-n64-d4", "vgg16-n128-d4"])
def test_twelve_links_out_of_a_block_of_eight_leave_a_pair_three_links_apart(name):
    """Twenty links for 56 pairs are 92 hops, but no such digraph has all the rings; the best known design has 93."""
    instance, plan = instances.load(f"codesign/{name}"), instances.best(f"codesign/{name}")
    job = job_of(instance, plan.choices(instance))
    known = max(congestion_bounds(job).values())
    piece = job.traffic_bytes.max() / (8 * job.degree)
    assert relay_bound(job, known) == pytest.approx(known + piece, rel=1e-6)
