"""Schedules in which changes cost time."""

import numpy as np
import pytest
from scheduling_brute_force import CONCAVE, brute_force, random_instance
from volume import for_each

from ddlopt.frontier.scheduling.kept_runs import KeptRuns, _Blocks, changes, without_cost_of_change
from ddlopt.frontier.scheduling.lp_guided import LpGuided
from ddlopt.instances.generators.scheduling import generate
from ddlopt.models.scheduling import evaluate
from ddlopt.models.scheduling.pool import schedule_of_widths
from ddlopt.solvers.contracts import Limits
from ddlopt.solvers.scheduling.gadget import Gadget


def costly(seed=1, **options):
    return generate("elastic", seed, **{"jobs": 12, "slots": 12, "gpus": 8, "change_s": 1800.0} | options)


def random_widths(instance, seed):
    """(T, I) widths within windows; they need not fit beside each other."""
    rng = np.random.default_rng(seed)
    widths = rng.integers(0, 3, (instance.slots, len(instance.jobs)))
    for i, job in enumerate(instance.jobs):
        widths[: job.arrival, i] = widths[instance.last_slot(i) :, i] = 0
    return widths


def test_changes_by_hand():
    widths = np.array([[0, 2, 2, 0, 2, 1], [1, 1, 1, 1, 1, 1]]).T
    assert changes(widths).T.astype(int).tolist() == [[0, 0, 0, 0, 1, 1], [0] * 6]


@for_each("seed", range(4))
def test_worth_is_what_evaluate_finds(seed):
    instance = costly(seed, gpus=64)  # whatever is drawn fits
    widths = random_widths(instance, seed)
    rows = [{int(i): int(row[i]) for i in np.flatnonzero(row)} for row in widths]
    found = evaluate(instance, schedule_of_widths(instance, rows))
    assert found.violations == ()
    assert found.details["changes"] == changes(widths).sum() > 10
    assert _Blocks(instance).worth(widths) == pytest.approx(found.objective, rel=1e-12)


@for_each("block", [(0, 1), (3, 4), (4, 8), (8, 12)])
def test_what_a_block_does_is_counted_with_what_comes_after(block):
    instance = costly(2, gpus=64)
    blocks, widths, jobs = _Blocks(instance), random_widths(instance, 5), np.arange(12)
    present = np.array([j for j in jobs if instance.jobs[j].arrival < block[1]])
    for width in range(3):
        other = widths.copy()
        for j in present:
            other[max(block[0], instance.jobs[j].arrival) : block[1], j] = width
        others = blocks.progress(widths).sum(axis=0)[present] - blocks._now(widths, present, block)
        each = np.full(len(present), width)
        new = blocks._with(widths, present, block, np.arange(len(present)), each)
        assert others + new == pytest.approx(blocks.progress(other).sum(axis=0)[present], rel=1e-12)


@for_each("seed", range(6))
def test_is_near_the_optimum_of_tiny_instances(seed):
    instance = random_instance(np.random.default_rng(seed), utilities=CONCAVE, change=True, slots=4, places=(2,))
    if not instance.changes.cost_time:
        pytest.skip("no job was drawn that loses anything")
    best = brute_force(instance).objective
    result = KeptRuns().solve(instance, Limits())
    assert 0.85 * best <= result.objective <= best * (1 + 1e-9)
    assert result.bound >= best * (1 - 1e-9)


def test_keeps_more_than_methods_that_do_not_look_ahead():
    instance = costly()
    kept = KeptRuns().solve(instance, Limits())
    assert kept.objective > Gadget().solve(instance, Limits()).objective
    free = LpGuided().solve(without_cost_of_change(instance), Limits()).solution
    free = free.model_copy(update={"instance_digest": instance.digest})
    assert kept.objective > evaluate(instance, free).objective
    assert KeptRuns().solve(instance, Limits(), start=kept.solution).objective >= kept.objective


def test_refuses_what_it_does_not_know():
    assert "nothing to keep" in KeptRuns().refuses(costly(change_s=None))
    assert "objective" in KeptRuns().refuses(costly(objective="max_min"))
    assert LpGuided().refuses(costly(change_s=None)) is None
    assert "changes cost time" in LpGuided().refuses(costly())


@for_each("seed", range(12))
def test_runs_are_as_long_as_they_have_to_be(seed):
    instance = random_instance(
        np.random.default_rng(seed),
        slots=5,
        places=((3,), (2,))[seed % 2],
        utilities=(*CONCAVE, "all_or_nothing"),
        deadlines=seed % 3 == 0,
        change=seed % 2 == 1,
        least_runs=True,
    )
    if not instance.changes.must_wait:
        pytest.skip("no job was drawn whose runs are long")
    best = brute_force(instance).objective
    found = KeptRuns().solve(instance, Limits())
    assert 0.5 * best <= found.objective <= best * (1 + 1e-9)
    assert KeptRuns().solve(instance, Limits(), start=found.solution).objective >= found.objective
