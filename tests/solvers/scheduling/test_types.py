"""Every method of the family on an instance with types: it is right about them, or refuses in a line."""

import numpy as np
import pytest
from scheduling_brute_force import UTILITIES, brute_force, random_instance
from volume import for_each, seeds

from ddlopt.frontier.scheduling.job_plans.job_plans import JobPlans
from ddlopt.frontier.scheduling.type_windows import TypeWindows
from ddlopt.models.scheduling import Job, RingTiming, SchedulingInstance, ServerGroup, evaluate
from ddlopt.models.scheduling.bounds import bound
from ddlopt.solvers.catalogue import method
from ddlopt.solvers.contracts import Limits
from ddlopt.solvers.scheduling.methods import ENTRIES

TIMING = RingTiming(gradient_bytes=1e8, bandwidth_bytes_per_s=1e9, forward_s_per_sample=0.1)
KNOW = {"exact", "configurations", "time-indexed", "type-windows", "job-plans", "gavel", "fifo", "srtf", "las"}


def typed(objective="utility", preemptive=True, **job):
    """Three jobs of very different speeds; rigid, and with times, whatever methods for gangs want."""
    speeds = ({"v100": 1.0, "k80": 0.1}, {"v100": 1.0, "k80": 0.9}, {"v100": 0.5, "k80": 0.0})
    data = {"max_workers": 2, "timing": TIMING, "minibatches": 200.0} | job
    return SchedulingInstance(
        name="typed",
        slots=8,
        slot_s=10.0,
        servers=(ServerGroup(capacity={"gpu": 2.0}, type="v100"), ServerGroup(capacity={"gpu": 2.0}, type="k80")),
        jobs=tuple(Job(name=str(place), speeds=each, **data) for place, each in enumerate(speeds)),
        objective=objective,
        preemptive=preemptive,
    )


CASES = {
    "utility": typed(),
    "changes": typed(change_s=2.0),
    "max_min": typed("max_min"),
    "makespan": typed("makespan", min_workers=2),
    "completion-gangs": typed("completion", preemptive=False, min_workers=2),
    "one-piece": typed(preemptive=False),
}


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("entry", [entry.name for entry in ENTRIES])
def test_a_method_knows_types_or_refuses(entry, case):
    asked, tried = CASES[case], method(entry, "scheduling")
    reason = tried.refuses(asked)
    if reason is not None:
        assert "\n" not in reason
        assert '"type' not in reason
        return
    assert entry in KNOW
    result = tried.solve(asked, Limits(time_s=20))
    evaluation = evaluate(asked, result.solution)
    assert evaluation.feasible
    assert float(evaluation.objective) == pytest.approx(float(result.objective))


@pytest.mark.parametrize("objective", ["utility", "max_min"])
@for_each("seed", seeds(2, 30))
def test_windows_never_beat_the_optimum_and_a_window_of_everything_has_it(objective, seed):
    asked = random_instance(
        np.random.default_rng(seed),
        objective=objective,
        types=("mixed", "apart")[seed % 2],
        places=(2, 2),
        energy=seed % 3 == 0,
        min_workers=seed % 4 == 0,
    )
    if not asked.accelerators.matter:
        return
    best = brute_force(asked).objective
    worth = [
        float(method.solve(asked, Limits()).objective)
        for method in (TypeWindows(slots=0, ignore=True), TypeWindows(slots=0), TypeWindows(slots=asked.slots))
    ]
    assert max(worth) <= best + 1e-9
    assert worth[2] >= worth[1] - 1e-9
    assert worth[2] == pytest.approx(best, rel=3e-5, abs=1e-9)


@for_each("seed", seeds(2, 40))
def test_plans_of_jobs_bound_the_optimum_and_never_beat_it(seed):
    asked = random_instance(
        np.random.default_rng(seed),
        types=("mixed", "apart")[seed % 2],
        places=((2, 2), (3, 1, 1))[seed % 3 % 2],
        utilities=tuple(UTILITIES),
        deadlines=seed % 2 == 0,
        min_workers=seed % 4 < 2,
        uneven=seed % 5 == 0,
    )
    if not asked.accelerators.matter or JobPlans().refuses(asked) is not None:
        return
    best = brute_force(asked).objective
    result = JobPlans().solve(asked, Limits())
    assert result.checked
    assert float(result.objective) <= best + 1e-9 <= float(result.bound) + 2e-9
    assert result.bound <= bound(asked) + 1e-9
    assert float(result.objective) >= 0.9 * best


def test_plans_of_jobs_refuse_what_types_do_not_decide():
    powered = typed().model_copy(update={"energy_price_per_j": 1e-4})
    servers = tuple(one.model_copy(update={"idle_w": 5.0, "count": 2}) for one in powered.servers)
    for asked, words in (
        (typed("max_min"), "plans of jobs on types of accelerators have utilities"),
        (typed(preemptive=False), "one piece"),
        (typed(change_s=1.0), "changes cost time"),
        (SchedulingInstance.from_json(powered.model_copy(update={"servers": servers}).to_json()), "decides more than"),
    ):
        assert words in JobPlans().refuses(asked)


def test_the_greedy_gives_fast_types_to_those_whom_they_help():
    # 100 mini-batches in a slot at pace 1: with one slot the first job is alone on the V100.
    asked = typed(max_workers=1).model_copy(update={"slots": 1, "jobs": typed(max_workers=1).jobs[:2]})
    asked = SchedulingInstance.from_json(asked.to_json())
    best = TypeWindows().solve(asked, Limits()).objective
    assert best == pytest.approx(0.5 + 0.5)  # both fit on the V100 server
    blind = TypeWindows(slots=0, ignore=True).solve(asked, Limits()).objective
    assert blind == pytest.approx(0.05 + 0.45)
