"""Jobs that become known when they arrive: feasible, never better than the best, and without foresight."""

from fractions import Fraction

import pytest
from jobs_brute_force import brute_force
from volume import seeds

import ddlopt
from ddlopt.frontier.cluster.joint.rolling import rolled
from ddlopt.instances.generators import generate
from ddlopt.models.cluster.jobs.evaluate import evaluate_jobs
from ddlopt.solvers.cluster.jobs.list_exchange import ListSearch
from ddlopt.solvers.contracts import Limits
from ddlopt.solvers.heuristic import Clock

OBJECTIVES = ("makespan", "weighted_completion", "weighted_tardiness")


def drawn(seed, **options):
    given = {"jobs": 5, "servers": 4, "spread": 0.5, "slack": 0.7, "objective": OBJECTIVES[seed % 3]} | options
    return generate("cluster", "jobs", seed, **given)


def scheduled(instance):
    return rolled(instance, 1, 0, Clock(Limits(), None))


@pytest.mark.parametrize("seed", seeds(3, 30))
def test_a_schedule_without_foresight_is_one(seed):
    instance = drawn(seed, jobs=4)
    schedule, moments = scheduled(instance)
    found = evaluate_jobs(instance, schedule, exact=True)
    assert found.feasible
    assert found.objective >= brute_force(instance)
    assert 1 <= moments <= 2 * len(instance.jobs)


@pytest.mark.parametrize("seed", seeds(3, 30))
def test_what_comes_later_changes_nothing_before(seed):
    instance = drawn(seed)
    jobs = sorted(instance.jobs, key=lambda job: job.arrival_s)
    whole = scheduled(instance.changed(jobs=jobs))[0]
    fewer = scheduled(instance.changed(jobs=jobs[:-1]))[0]
    known = [run for (run,) in whole.runs if Fraction(run.start) < Fraction(jobs[-1].arrival_s)]
    assert known
    assert known == [run for (run,) in fewer.runs if Fraction(run.start) < Fraction(jobs[-1].arrival_s)]


def test_a_job_alone_is_as_fast_as_can_be():
    instance = drawn(0, jobs=1)
    (job,) = instance.jobs
    assert evaluate_jobs(instance, scheduled(instance)[0], exact=True).objective == brute_force(instance)
    assert Fraction(scheduled(instance)[0].runs[0][0].start) == Fraction(job.arrival_s)


def test_jobs_that_run_stay_first_in_a_list():
    instance = drawn(1, jobs=8)
    search = ListSearch(instance, 0, 3)
    search.run(4)
    assert list(search.order[:3]) == [0, 1, 2]
    assert sorted(search.order) == list(range(8))


def test_with_plans():
    instance = generate("cluster", "joint", 1, jobs=4, servers=4, widths=(2, 3), spread=1.0)
    joint = ddlopt.solve(instance, "refinement", time_limit=60)
    for plans in ("paper", "best"):
        found = ddlopt.solve(instance, f"rolling:plans={plans}", time_limit=60)
        assert found.checked
        assert found.objective >= joint.bound * (1 - 1e-9)
