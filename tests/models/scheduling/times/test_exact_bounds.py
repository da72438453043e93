"""The bound on makespans in rational numbers: no schedule ends before, and floats say no less."""

from fractions import Fraction

import pytest
from scheduling_brute_force import brute_force
from volume import for_each, some

from ddlopt import instances
from ddlopt.instances.generators.scheduling import generate
from ddlopt.instances.library import instance_file
from ddlopt.models.errors import NotApplicableError
from ddlopt.models.scheduling import Job, RingTiming, Run, Schedule, SchedulingInstance, ServerGroup, evaluate
from ddlopt.models.scheduling.bounds import bound
from ddlopt.models.scheduling.problem import PROBLEM
from ddlopt.models.scheduling.times.bounds import exact_time_bound

MAKESPANS = [
    name for name in instances.names("scheduling") if '"objective": "makespan"' in instance_file(name).read_text()
]
MET = ("scheduling/gangs-contention-j12-g16", "scheduling/gangs-contention-j38-g32", "scheduling/gangs-j80-g64")
"""Bundled instances whose best schedules end at the bound: by the longest job, and by areas."""


@pytest.mark.parametrize("name", MAKESPANS)
def test_no_schedule_of_the_library_ends_before(name):
    instance = instances.load(name)
    found, best = exact_time_bound(instance), instances.best(name)
    assert isinstance(found, Fraction)
    objective = evaluate(instance, best, exact=True).objective
    assert found == objective if name in MET else found <= objective
    assert found <= Fraction(bound(instance))


@for_each("seed, limited_by", some([(seed, limited) for seed in range(8) for limited in ("workers", "contention")], 3))
def test_trying_everything_ends_no_sooner(seed, limited_by):
    instance = generate("small", seed, limited_by=limited_by, jobs=3, slots=3, gpus=2)
    instance = instance.model_copy(update={"objective": "makespan"})
    best = brute_force(instance)
    if best is not None:
        assert exact_time_bound(instance) <= Fraction(best.objective)


def test_other_objectives_have_none():
    with pytest.raises(NotApplicableError, match="makespans and ratios only"):
        exact_time_bound(instances.load("scheduling/tiny-completion"))


@pytest.mark.parametrize("missing", [0.0, 5e-10])
@pytest.mark.parametrize("count", [1, 2])
def test_a_server_holds_what_the_check_lets_pass(count, missing):
    """Three jobs of a GPU each run at once on a hair less than three, which the check takes for rounding."""
    timing = RingTiming(gradient_bytes=0, bandwidth_bytes_per_s=1, forward_s_per_sample=1)
    jobs = tuple(Job(name=str(k), max_workers=1, timing=timing, minibatches=2) for k in range(3 * count))
    servers = (ServerGroup(count=count, capacity={"gpu": 3 * (1 - missing)}),)
    asked = SchedulingInstance(name="x", slots=2, slot_s=1, servers=servers, jobs=jobs, objective="makespan")
    runs = tuple(Run(job=k, start=0, slots=2, workers=((k // 3, 1),)) for k in range(3 * count))
    found = evaluate(asked, Schedule(instance="x", runs=runs), exact=True)
    assert found.violations == ()
    assert exact_time_bound(asked) == found.objective == 2
    assert bound(asked) == PROBLEM.tightest_bound(asked) == 2
    useful = asked.changed(objective="utility")
    assert PROBLEM.tightest_bound(useful) >= evaluate(useful, Schedule(instance="x", runs=runs)).objective == 3 * count
