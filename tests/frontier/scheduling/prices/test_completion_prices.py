"""Prices on slots bound completion times from below, whatever they are, and come near on a trace."""

import numpy as np
import pytest
from scheduling_brute_force import brute_force, random_instance
from shared_data import shared_data
from volume import for_each

from ddlopt.frontier.scheduling.makespan.bounds import completion_bound
from ddlopt.frontier.scheduling.makespan.needs import needs, whole_resources
from ddlopt.frontier.scheduling.prices.completion_prices import _Plans, priced_bound
from ddlopt.instances.readers import convert
from ddlopt.models.errors import InfeasibleError
from ddlopt.models.scheduling.problem import PROBLEM
from ddlopt.solvers.catalogue import default_method, method
from ddlopt.solvers.contracts import Limits

FEATURES = (
    {},
    {"preemptive": False},
    {"deadlines": True, "min_workers": True},
    {"places": (2, 2), "uneven": True, "latency": True},
    {"places": (2, 1), "contention": True},
)


@for_each("seed", range(100))
def test_no_prices_pass_the_optimum(seed):
    rng = np.random.default_rng(seed)
    features = {"slots": 4} | FEATURES[seed % len(FEATURES)]
    instance = random_instance(rng, objective="completion", **features)
    best = brute_force(instance)
    if best is None:
        return
    jobs, resource = needs(instance), whole_resources(instance)[0]
    slots = best.objective / instance.slot_s
    plans = _Plans(jobs, resource)
    for scale in (0.0, 0.3, 1.0):
        assert plans.at(rng.random(instance.slots) * scale)[0] <= slots * (1 + 1e-9)
    assert priced_bound(jobs, resource) <= slots * (1 + 1e-9)
    assert PROBLEM.tightest_bound(instance) <= best.objective * (1 + 1e-9)


def test_jobs_of_a_slot_wait_for_each_other():
    """Six jobs of one slot on two workers end with slots 1, 1, 2, 2, 3 and 3."""
    instance = random_instance(np.random.default_rng(0), jobs=1, slots=4, places=(2,), objective="completion")
    job = instance.jobs[0]
    alike = job.model_copy(update={"arrival": 0, "min_workers": 1, "max_workers": 1, "minibatches": 1e-3})
    waiting = instance.model_copy(update={"jobs": (alike,) * 6})
    weight = job.utility.value
    found = priced_bound(needs(waiting), whole_resources(waiting)[0])
    assert found == pytest.approx(12 * weight, rel=1e-2)
    assert found <= 12 * weight * (1 + 1e-12)


def test_prices_add_to_what_the_machine_knows():
    """The machine that does all jobs at once knows no least time of each; prices do, and the optimum is far nearer."""
    gains, better = [], 0
    for seed in range(40):
        instance = random_instance(np.random.default_rng(seed), jobs=4, slots=6, places=(3,), objective="completion")
        try:
            found = priced_bound(needs(instance), whole_resources(instance)[0]) * instance.slot_s
            both, machine = PROBLEM.tightest_bound(instance), completion_bound(instance)
            gains.append(found / both)
            better += both > machine * (1 + 1e-6)
        except InfeasibleError:
            continue
    assert max(gains) <= 1 + 1e-6
    assert np.mean(gains) > 0.9
    assert better >= 5


@pytest.mark.slow
def test_philly_is_within_five_per_cent():
    """Ten days of a virtual cluster, by the default method and by the bound that it comes with."""
    path = shared_data("traces/philly.csv")
    window = {"virtual_cluster": "0e4a51", "start": "2017-10-09", "hours": 240.0, "gpus": 32}
    instance = convert(path, "philly", objective="completion", **window)
    assert len(instance.jobs) == 243
    result = method(default_method(instance), "scheduling").solve(instance, Limits(time_s=60))
    assert result.gap <= 0.05
