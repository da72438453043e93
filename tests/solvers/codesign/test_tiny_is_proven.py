"""The default method on random small jobs: a proof every time, and of what trying everything finds."""

import numpy as np
import pytest
from codesign_cases import best_of_all, drawn
from volume import for_each, slow

from ddlopt import api
from ddlopt.instances.generators.codesign.random import random_job
from ddlopt.models.codesign import evaluate
from ddlopt.solvers.contracts import Status

GAP = 1e-4


def by_default(instance):
    """The answer of the method that a user gets: seconds each, but no test hangs on the machine."""
    return api.solve(instance, time_limit=600.0, gap=GAP)


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
