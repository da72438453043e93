"""Windows: some slots of an instance as an instance of their own."""

import numpy as np
import pytest
from scheduling_brute_force import CONCAVE, random_instance

from ddlopt.frontier.scheduling.horizon import window
from ddlopt.models.scheduling import Run, Schedule, evaluate
from ddlopt.models.scheduling.formulations.time_indexed.time_indexed import TimeIndexed
from ddlopt.solvers.backends import Highs
from ddlopt.solvers.contracts import Limits
from ddlopt.solvers.exact import build_model
from ddlopt.solvers.scheduling.gadget import Gadget


@pytest.fixture
def instance():
    rng = np.random.default_rng(0)
    return random_instance(rng, jobs=6, slots=6, places=(6,), utilities=CONCAVE, deadlines=True)


def test_jobs_have_their_part_of_the_slots(instance):
    slots = [1, 2, 4]
    part = window(instance, slots, [0.0] * 6)
    assert part.instance.slots == 3
    for place, job in enumerate(part.jobs):
        allowed = [t for t, slot in enumerate(slots) if instance.jobs[job].arrival <= slot < instance.last_slot(job)]
        assert allowed == list(range(part.instance.jobs[place].arrival, part.instance.last_slot(place)))
    left_out = set(range(6)) - set(part.jobs)
    for job in left_out:
        assert not any(instance.jobs[job].arrival <= slot < instance.last_slot(job) for slot in slots)


def test_finished_jobs_are_not_in_it(instance):
    done = [job.minibatches for job in instance.jobs]
    assert window(instance, range(6), done) is None
    done[2] = 0.0
    part = window(instance, range(6), done)
    assert (part.jobs, part.done) == ((2,), (0.0,))


def test_runs_go_in_and_come_back(instance):
    schedule = Gadget().solve(instance, Limits()).solution
    part = window(instance, [0, 3, 5], [0.0] * 6)
    inside = part.of(schedule.runs)
    assert evaluate(part.instance, inside).violations == ()
    back = part.back(inside)
    cells = {(run.job, t, run.workers) for run in schedule.runs for t in range(run.start, run.end) if t in (0, 3, 5)}
    assert {(run.job, run.start, run.workers) for run in back} == cells


def test_slots_that_are_best_beside_the_others_are_no_worse(instance):
    schedule = Gadget().solve(instance, Limits()).solution
    slots = [0, 1, 2]
    done = [0.0] * 6
    for run in schedule.runs:
        others = sum(t not in slots for t in range(run.start, run.end))
        done[run.job] += others * instance.progress(run.job, run.width)
    part = window(instance, slots, done)
    formulation = TimeIndexed(done=part.done)
    model = build_model("scheduling", formulation, part.instance)
    outcome = Highs().solve(model, Limits(gap=1e-6))
    found = part.back(formulation.read(model.scheduling, part.instance))
    kept = [
        Run(job=run.job, start=t, slots=1, workers=run.workers)
        for run in schedule.runs
        for t in range(run.start, run.end)
        if t not in slots
    ]
    together = evaluate(instance, Schedule(instance=instance.name, runs=tuple(kept + found)))
    assert together.violations == ()
    before = float(evaluate(instance, schedule).objective)
    assert float(together.objective) >= before * (1 - 1e-5)
    outside = sum(
        job.utility.of(min(1.0, done[i] / job.minibatches)) for i, job in enumerate(instance.jobs) if i not in part.jobs
    )
    inside = formulation.objective_value(part.instance, outcome.objective)
    assert float(together.objective) == pytest.approx(inside + outside, rel=1e-4)
