"""Jobs that may not change in every slot: evaluate, the model against trying everything, and refusals."""

import numpy as np
import pytest
from refusals import one_line
from scheduling_brute_force import CONCAVE, brute_force, random_instance
from volume import for_each, seeds

from ddlopt.models.errors import InstanceError
from ddlopt.models.scheduling import Run, Schedule, SchedulingInstance, evaluate
from ddlopt.models.scheduling.problem import PROBLEM
from ddlopt.solvers.catalogue import method
from ddlopt.solvers.contracts import Limits, Status


def drawn(seed):
    """A tiny random instance with least runs, with and without a cost of change."""
    return random_instance(
        np.random.default_rng(seed),
        jobs=(3, 2)[seed % 2],
        slots=4,
        places=((3,), (2, 2))[seed % 2],
        objective=("utility", "utility", "max_min", "completion", "finish_time_fairness")[seed % 5],
        utilities=(*CONCAVE, "all_or_nothing"),
        deadlines=seed % 3 == 0,
        min_workers=seed % 4 == 0,
        uneven=seed % 6 == 3,
        change=seed % 2 == 1,
        least_runs=True,
    )


@for_each("seed", seeds(5, 200))
def test_the_optimum_is_that_of_trying_everything(seed):
    asked = drawn(seed)
    best = brute_force(asked)
    found = method("time-indexed", "scheduling").solve(asked, Limits(time_s=300))
    if best is None:
        assert found.status is Status.INFEASIBLE
        return
    assert found.objective == pytest.approx(best.objective, rel=1.1e-4, abs=1e-7)
    sign = 1 if asked.sense == "maximize" else -1
    assert sign * (PROBLEM.tightest_bound(asked) - best.objective) >= -1e-9


def one_job(least, **fields):
    asked = random_instance(np.random.default_rng(1), jobs=1, slots=6, arrivals=False)
    job = asked.jobs[0].model_copy(update={"least_run_slots": least, "max_workers": 2, "minibatches": 1e6} | fields)
    return SchedulingInstance(**{name: getattr(asked, name) for name in type(asked).model_fields} | {"jobs": (job,)})


def violations(asked, *runs):
    made = tuple(Run(job=0, start=start, slots=slots, workers=((0, width),)) for start, slots, width in runs)
    schedule = Schedule(instance=asked.name, instance_digest=asked.digest, runs=made)
    return [(one.kind, one.lhs, one.rhs) for one in evaluate(asked, schedule).violations]


def test_runs_are_measured_with_those_that_go_on_unchanged():
    asked = one_job(3)
    assert violations(asked, (0, 2, 1), (2, 1, 1)) == []
    assert violations(asked, (0, 2, 1), (2, 3, 2)) == [("run_is_long_enough", 2, 3)]
    assert violations(asked, (0, 2, 1), (3, 3, 1)) == [("run_is_long_enough", 2, 3)]


def test_a_window_or_an_end_may_cut_a_run_short():
    assert violations(one_job(3), (0, 3, 1), (4, 2, 2)) == []
    assert violations(one_job(3), (0, 3, 1), (3, 2, 2)) == [("run_is_long_enough", 2, 3)]
    assert violations(one_job(3, minibatches=1e-3), (0, 1, 1)) == []


def test_least_runs_that_do_nothing_are_refused():
    data = one_job(2).model_dump(mode="json") | {"preemptive": False}
    with one_line(InstanceError, "jobs run in one piece and never change"):
        SchedulingInstance.from_data(data, "here")
    data = one_job(2).model_dump(mode="json")
    data["jobs"][0]["least_run_slots"] = 0
    with one_line(InstanceError, "least_run_slots"):
        SchedulingInstance.from_data(data, "here")


@pytest.mark.parametrize(
    "name",
    [
        "lp-guided",
        "gadget",
        "fifo",
        "gavel",
        "las",
        "slot-patterns",
        "configurations",
        "fair-shares",
    ],
)
def test_who_does_not_know_them_says_so(name):
    asked = one_job(2)
    assert "may not change in every slot" in method(name, "scheduling").refuses(asked)
