"""The bounds of trees in whole numbers: never above the optimum, and at it where jobs do not compete for memory."""

from fractions import Fraction
from functools import cache

import pytest
from tree_cases import optimum, random_tree
from volume import seeds

from ddlopt.certificates.aggregation.tree import exact_congestion, exact_utilization
from ddlopt.certificates.aggregation.tree.exact_bounds import closed_bounds, exact_tree_bound
from ddlopt.certificates.aggregation.tree.exact_congestion import TreeStates
from ddlopt.models.aggregation.tree.bounds import tree_bound
from ddlopt.models.aggregation.tree.instance import TreeInstance, TreeJob

CLOSE = 1e-5
SHAPES = (None, "path", "star", "caterpillar", "complete")


@pytest.mark.parametrize("seed", seeds(8, 60))
@pytest.mark.parametrize("goal", ["utilization", "congestion"])
def test_it_is_the_optimum_of_all_answers(seed, goal):
    jobs = 1 + seed % 2
    tree = random_tree(1000 + seed, nodes=7 if jobs == 1 else 4, jobs=jobs, goal=goal, shape=SHAPES[seed % 5])
    best, found = optimum(tree), exact_tree_bound(tree)
    assert isinstance(found, Fraction)
    assert found <= best * (1 + 1e-12)
    if goal == "congestion" or jobs == 1:
        assert found >= best * (1 - CLOSE)


@pytest.mark.parametrize("seed", range(4))
def test_jobs_that_share_no_memory_share_budgets_at_the_optimum(seed):
    tree = random_tree(50 + seed, nodes=4, jobs=2, goal="utilization", shared=False)
    assert exact_tree_bound(tree) == pytest.approx(optimum(tree), rel=1e-9)


def test_a_limit_is_refuted_just_below_the_optimum_and_not_at_it():
    tree = random_tree(3, nodes=7, goal="congestion")
    best = Fraction(optimum(tree))
    states = TreeStates(tree)
    assert states.excludes(best * (1 - Fraction(1, 10**9)))
    assert not states.excludes(best * (1 + Fraction(1, 10**9)))


@pytest.mark.parametrize("seed", seeds(3, 60))
def test_the_closed_bound_is_that_in_floating_point(seed):
    tree = random_tree(seed, nodes=30, jobs=1 + seed % 3)
    assert float(closed_bounds(tree)[0]) == pytest.approx(tree_bound(tree), rel=1e-9)
    assert exact_tree_bound(tree) >= closed_bounds(tree)[0]


@pytest.mark.parametrize(
    ("budget", "budgets", "seconds"),
    [
        (None, (2, 0), 3 * 0.58 - (0.18 + 0.16)),
        (None, (2, 1), 3 * 0.58 - (0.18 + 0.16) - 0.36),
        (2, (2, 1), 3 * 0.58 - (0.36 + 0.18)),
        (3, (None, None), 3 * 0.58 - (0.36 + 0.32 + 0.24)),
        (None, (None, None), 3 * (0.01 + 0.02 + 0.03 + 0.04 + 0.05)),
    ],
)
def test_budgets_go_to_the_switches_that_save_most(budget, budgets, seconds):
    """A message of size 1 saves 12 · 0.01 s at the root, then 0.06, 0.16 and 0.18, and nothing where it is alone."""
    jobs = [
        TreeJob(name=f"job-{size}", loads=(0, 3, 5, 1, 4), message_size=size, budget=most)
        for size, most in zip((1.0, 2.0), budgets, strict=True)
    ]
    tree = TreeInstance(
        name="star", source="by hand", goal="utilization", parents=(None, 0, 0, 0, 0), jobs=jobs, budget=budget,
        seconds_per_message=(0.01, 0.02, 0.03, 0.04, 0.05),
    )  # fmt: skip
    assert tree_bound(tree) == pytest.approx(seconds, rel=1e-8)


@cache
def above_the_closed_bound(goal):
    """A tree whose bound is more than the closed one."""
    trees = (random_tree(seed, nodes=12, goal=goal) for seed in range(12))
    return next(tree for tree in trees if exact_tree_bound(tree) > closed_bounds(tree)[0])


@pytest.mark.parametrize(
    ("module", "name"),
    [
        (exact_congestion, "_MOST_STATES"),
        (exact_congestion, "_MOST_COMPARED"),
        (exact_congestion, "_MOST_JOBS"),
        (exact_utilization, "_MOST_ENTRIES"),
    ],
)
def test_what_is_too_large_has_the_closed_bound(module, name, monkeypatch):
    goal = "congestion" if module is exact_congestion else "utilization"
    tree = above_the_closed_bound(goal)
    monkeypatch.setattr(module, name, 0)
    assert exact_tree_bound(tree) == closed_bounds(tree)[0]
