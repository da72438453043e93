"""Sweeps over slots from the linear relaxation."""

import numpy as np
import pytest
from scheduling_brute_force import CONCAVE, UTILITIES, brute_force, random_instance
from shared_data import shared_data
from volume import for_each

import ddlopt
from ddlopt.frontier.scheduling import lp_guided
from ddlopt.frontier.scheduling.job_plans.slot_sweeps import CellSweeps, SlotSweeps
from ddlopt.frontier.scheduling.lp_guided import LpGuided
from ddlopt.instances import convert
from ddlopt.instances.generators.scheduling import generate
from ddlopt.models.scheduling import evaluate
from ddlopt.models.scheduling.pool import schedule_of_widths
from ddlopt.solvers.contracts import Limits
from ddlopt.solvers.heuristic import Clock
from ddlopt.solvers.scheduling.gadget import Gadget


def contended(seed):
    return generate("elastic", seed, jobs=20, slots=12, gpus=8)


def drawn(seed, **options):
    return random_instance(np.random.default_rng(seed), **{"utilities": CONCAVE} | options)


def widths_of(instance, schedule):
    widths = np.zeros((instance.slots, len(instance.jobs)), dtype=np.int64)
    for run in schedule.runs:
        widths[run.start : run.end, run.job] = run.width
    return widths


@for_each("seed", range(8))
def test_is_near_the_optimum_of_tiny_instances(seed):
    instance = drawn(seed, deadlines=bool(seed % 2), min_workers=bool(seed % 3), utilities=tuple(UTILITIES))
    result = LpGuided().solve(instance, Limits())
    best = brute_force(instance).objective
    assert 0.8 * best <= result.objective <= best * (1 + 1e-9)


def test_sweeps_never_lose():
    slots = SlotSweeps(contended(1))
    values = [value for value, _ in slots.sweeps(np.zeros((12, 20)), False, 20)]
    assert len(values) > 2
    assert values == sorted(values)


def test_worth_is_what_evaluate_finds():
    instance = drawn(2, jobs=8, slots=6, places=(8,), energy=True)
    server = instance.servers[0].model_copy(update={"idle_w": 0.0})
    instance = instance.model_copy(update={"servers": (server,)})
    result = LpGuided().solve(instance, Limits())
    slots = SlotSweeps(instance)
    assert slots.worth(widths_of(instance, result.solution)) == pytest.approx(result.objective, rel=1e-9)


def test_beats_the_greedy_where_the_future_matters():
    wins = 0
    for seed in range(6):
        instance = contended(seed)
        guided, greedy = (method.solve(instance, Limits()).objective for method in (LpGuided(), Gadget()))
        assert guided >= greedy
        wins += guided > greedy * (1 + 1e-6)
    assert wins >= 5


def test_a_start_is_never_lost():
    instance = drawn(3)
    best = brute_force(instance)
    result = LpGuided(sweeps=2).solve(instance, Limits(), start=best.schedule)
    assert result.objective == pytest.approx(best.objective, rel=1e-12)


def test_without_time_it_is_a_sweep():
    instance = drawn(4)
    result = LpGuided().solve(instance, Limits(time_s=1e-6))
    assert not result.details["guided"]
    assert evaluate(instance, result.solution).violations == ()


@pytest.mark.parametrize("started", [False, True])
def test_a_sweep_that_is_cut_short_is_a_schedule(started):
    class Soon:
        asked = 0

        @property
        def expired(self):
            self.asked += 1
            return self.asked > 7

    instance = contended(2)
    slots = CellSweeps(instance)
    beginning = np.zeros(len(slots.job))
    if started:
        _, widths = next(iter(slots.sweeps(beginning, False, 1)))
        beginning = slots.rates(slots.job, widths)
    (worth, widths), *more = slots.sweeps(beginning, False, 20, clock=Soon())
    assert not more
    found = evaluate(instance, schedule_of_widths(instance, list(slots.by_slot(widths))))
    assert found.violations == ()
    assert float(found.objective) == pytest.approx(worth, rel=1e-9)
    assert max(slots.slot[widths > 0]) <= 6


def test_cells_are_the_windows_of_jobs():
    instance = drawn(6, jobs=5, slots=7, deadlines=True)
    slots = CellSweeps(instance)
    cells = sorted((t, i) for i, job in enumerate(instance.jobs) for t in range(job.arrival, instance.last_slot(i)))
    assert list(zip(slots.slot.tolist(), slots.job.tolist(), strict=True)) == cells
    assert slots.start.tolist() == [sum(t < slot for t, _ in cells) for slot in range(instance.slots + 1)]


@pytest.mark.slow
def test_the_default_is_as_good_as_the_greedy_on_all_of_philly():
    instance = convert(shared_data("traces/philly.csv"), "philly", slack=1.0, gpus=352)
    best, greedy = (ddlopt.solve(instance, method, time_limit=600) for method in (None, "gadget"))
    assert best.method == "lp-guided"
    assert "left out" in best.message
    assert best.objective >= greedy.objective


def test_first_sweep_follows_the_order_given():
    instance = drawn(5, jobs=6, slots=5)
    slots = SlotSweeps(instance)
    backward = next(iter(slots.sweeps(np.zeros((5, 6)), True, 1)))
    given = next(iter(slots.sweeps(np.zeros((5, 6)), False, 1, np.arange(5)[::-1])))
    assert backward[0] == given[0]
    assert (backward[1] == given[1]).all()


def test_several_slots_at_a_time_guide_well():
    """No worse than the greedy, and nearly as good as by single slots."""
    instance = generate("elastic", 4, jobs=30, slots=30, gpus=16)
    greedy = Gadget().solve(instance, Limits()).objective
    slots = CellSweeps(instance)
    whole = LpGuided().solve(instance, Limits()).objective
    for factor in (2, 3):
        progress = LpGuided()._relaxation(instance, slots, 0, Clock(Limits(), None), factor)
        by_job = np.bincount(slots.job, weights=progress)
        assert (by_job <= [job.minibatches * (1 + 1e-6) + 2 * rate(job, instance) for job in instance.jobs]).all()
        best = max(value for value, _ in slots.sweeps(progress, False, 100))
        assert best >= greedy
        assert best >= whole * (1 - 5e-3)


def rate(job, instance):
    return float(job.timing.minibatches_per_s(job.max_workers)) * instance.slot_s * 3


def test_a_large_instance_begins_with_several_slots_at_a_time(monkeypatch):
    monkeypatch.setattr(lp_guided, "_EFFORT", lp_guided.Effort(coarse=10))
    instance = contended(3)
    taken = []
    relaxation = LpGuided._relaxation
    monkeypatch.setattr(LpGuided, "_relaxation", lambda self, *args: taken.append(args[-1]) or relaxation(self, *args))
    result = LpGuided().solve(instance, Limits())
    assert len(taken) == 2
    assert taken[0] > taken[1] == 1
    assert result.objective >= Gadget().solve(instance, Limits()).objective
