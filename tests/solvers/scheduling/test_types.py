"""Every method of the family on an instance with types: it is right about them, or refuses in a line."""

import pytest

from ddlopt.models.scheduling import Job, RingTiming, SchedulingInstance, ServerGroup, evaluate
from ddlopt.solvers.catalogue import method
from ddlopt.solvers.contracts import Limits
from ddlopt.solvers.scheduling.methods import ENTRIES

TIMING = RingTiming(gradient_bytes=1e8, bandwidth_bytes_per_s=1e9, forward_s_per_sample=0.1)
KNOW = {"exact", "time-indexed"}


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
