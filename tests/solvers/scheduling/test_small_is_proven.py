"""Up to six jobs, six slots and three servers, the default method proves the optimum, all but a few in seconds."""

import pytest
from scheduling_brute_force import brute_force
from volume import for_each, some

from ddlopt.instances.generators.scheduling import generate
from ddlopt.solvers.catalogue import default_method, method
from ddlopt.solvers.contracts import Limits, Status

ALL = [(limited_by, seed) for seed in range(200) for limited_by in ("workers", "contention", "network")]
QUICK = ALL[:3]
LEFT_OPEN = [("contention", 131), ("contention", 150)]
"""The least progress of jobs that run in one piece and slow each other down: 19 and 0.1 % after a minute."""
PROVEN = [case for case in ALL if case not in LEFT_OPEN]
ENOUGH_S = 300
"""Seconds in most cases, but no test hangs on the machine."""


def answer(instance, time_s):
    return method(default_method(instance), "scheduling").solve(instance, Limits(time_s=time_s))


@for_each("limited_by, seed", some(ALL, QUICK))
def test_it_is_the_optimum_of_trying_everything(limited_by, seed):
    instance = generate("small", seed, limited_by=limited_by, jobs=3, slots=3, gpus=2)
    best, found = brute_force(instance), answer(instance, ENOUGH_S)
    if best is None:
        assert found.status is Status.INFEASIBLE
        return
    assert found.status is Status.OPTIMAL
    assert found.objective == pytest.approx(best.objective, rel=1.1e-4, abs=1e-9)
    sign = 1 if instance.sense == "maximize" else -1
    assert sign * (found.bound - best.objective) >= -1e-6 * abs(best.objective) - 1e-9


@for_each("limited_by, seed", some(PROVEN, QUICK))
def test_six_jobs_in_six_slots_on_three_servers_are_proven(limited_by, seed):
    instance = generate("small", seed, limited_by=limited_by)
    assert answer(instance, ENOUGH_S).status in (Status.OPTIMAL, Status.INFEASIBLE)
