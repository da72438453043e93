"""The default method on random small jobs: a proof every time, and of what trying everything finds."""

import itertools

import numpy as np
import pytest
from brute_force import brute_force
from volume import for_each, slow

from ddlopt import api
from ddlopt.instances.generators.codesign.random import random_job
from ddlopt.models.codesign import evaluate, job_of
from ddlopt.models.codesign.tables import tables_of
from ddlopt.solvers.contracts import Status

GAP = 1e-4


def drawn(seed, most_servers, most_layers):
    """A job with at most so many servers and layers, and any of the features."""
    rng = np.random.default_rng([7, seed])
    servers = int(rng.integers(2, most_servers + 1))
    return random_job(
        rng,
        servers=servers,
        degree=min(int(rng.integers(1, 4)), servers - 1),
        layers=int(rng.integers(2, most_layers + 1)),
        strategies=int(rng.integers(2, 4)),
        density=float(rng.choice([0.3, 0.6, 1.0])),
        traffic=float(rng.choice([0.0, 0.5])),
        measured=float(rng.choice([0.0, 0.5])),
        optics=str(rng.choice(["one_way", "one_way", "duplex"])),
        overlap=str(rng.choice(["none", "none", "full"])),
        parallel_links=bool(rng.random() < 0.8),
        host_forwarding=bool(rng.random() < 0.85),
        memory_slack=None if rng.random() < 0.6 else 1.0,
    )


def by_default(instance):
    """The answer of the method that a user gets: seconds each, but no test hangs on the machine."""
    return api.solve(instance, time_limit=600.0, gap=GAP)


def best_of_all(instance):
    """Least iteration time over all choices of strategies, all links, all rings and all routes; inf if there is none.

    Choices that send the same bytes have the same best links, so each of these jobs is solved once.
    """
    tables, known, best = tables_of(instance), {}, np.inf
    for choices in itertools.product(*map(range, tables.sizes)):
        if not tables.fits(choices):
            continue
        compute_s = tables.compute_of(choices)
        if instance.iteration_time_s(compute_s, 0.0) >= best:
            continue
        job = job_of(instance, choices)
        key = () if job is None else (job.traffic_bytes.tobytes(), job.allreduce_groups)
        if key not in known:
            known[key] = 0.0 if job is None else brute_force(job)
        best = min(best, instance.iteration_time_s(compute_s, known[key]))
    return best


@for_each("seed", range(200))
def test_six_servers_are_proven(seed):
    instance = drawn(seed, 6, 4)
    result = by_default(instance)
    assert result.status in (Status.OPTIMAL, Status.INFEASIBLE)


@for_each(
    "seed",
    [12, 17, 27, *map(slow, sorted(set(range(200)) - {12, 17, 27}))],
)
def test_what_is_proven_is_the_best_of_all_plans(seed):
    instance = drawn(seed, 4, 3)
    best, result = best_of_all(instance), by_default(instance)
    if np.isinf(best):
        assert result.status is Status.INFEASIBLE
        return
    assert result.status is Status.OPTIMAL
    assert evaluate(instance, result.solution).feasible
    assert result.objective >= best * (1 - 1e-6)
    assert result.objective <= best * (1 + GAP) * (1 + 1e-6)
    assert result.bound <= best * (1 + 1e-6)


@pytest.mark.parametrize(("seed", "best"), [(3, 6.0), slow(11, 77 / 12)])
def test_where_one_exact_method_is_slow_the_other_is_asked(seed, best):
    """Direct links only: from a poor design branch and bound takes minutes, and other links than these are optimal."""
    rng = np.random.default_rng([11, seed])
    instance = random_job(
        rng,
        servers=6,
        degree=3,
        layers=int(rng.integers(2, 5)),
        strategies=int(rng.integers(2, 4)),
        density=float(rng.choice([0.3, 0.6, 1.0])),
        traffic=float(rng.choice([0.0, 0.5])),
        measured=float(rng.choice([0.0, 0.5])),
        optics=str(rng.choice(["one_way", "duplex"])),
        overlap="full",
        parallel_links=bool(rng.random() < 0.6),
        host_forwarding=False,
    )
    result = by_default(instance)
    assert result.status is Status.OPTIMAL
    assert result.objective <= best * (1 + GAP)


def test_joint_milp_says_which_rings_it_searches():
    """Four servers where a ring that no generator makes is part of the best plan."""
    instance = random_job(np.random.default_rng(2), servers=4, degree=2, layers=2, strategies=2, reduction=1.0)
    generators, every = (api.solve(instance, method) for method in ("joint-milp", "joint-milp:rings=all"))
    assert generators.scope == "generator rings"
    assert generators.scope_gap <= GAP * 1.01
    assert every.scope is None
    assert every.status is Status.OPTIMAL
    assert every.objective < generators.objective * 0.99


def test_links_that_a_choice_needs_and_another_lacks():
    """No server of six reaches two others over one duplex link: either strategy pairs them differently."""
    instance = drawn(12, 6, 4)
    assert by_default(instance).status is Status.INFEASIBLE
