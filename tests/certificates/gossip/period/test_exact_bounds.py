"""The least time to a target in rational numbers: no plan is faster, and what some plan takes is not proven away."""

from fractions import Fraction

import numpy as np
import pytest
from volume import for_each

from ddlopt import instances
from ddlopt.certificates.gossip.period.exact_bounds import _Exact, exact_period_bound
from ddlopt.models.errors import InfeasibleError
from ddlopt.models.gossip import PeriodInstance, PeriodPlan, evaluate
from ddlopt.models.gossip.period.bounds import period_bound
from ddlopt.models.gossip.period.time_to_target import TimeToTarget


def drawn(seed):
    rng = np.random.default_rng([3, seed])
    step = float(rng.choice([0.002, 0.01])) if rng.random() < 0.4 else None
    return PeriodInstance(
        name=f"drawn-{seed}",
        workers=int(rng.integers(2, 40)),
        compute_s=float(rng.uniform(0.01, 2)),
        target=float(rng.uniform(0.05, 1)),
        initial_gap=float(rng.uniform(0.1, 3)),
        variance=float(rng.uniform(0.1, 3)),
        communication_s=float(rng.choice([0.0, rng.uniform(0, 5)])),
        mixing=float(rng.choice([0.0, rng.uniform(0, 0.95)])),
        step_size=step,
        whole=bool(rng.random() < 0.5),
        deviation=str(rng.choice(["exact", "posynomial"])),
    )


@for_each("seed", range(100))
def test_no_plan_is_faster_and_a_bound_that_one_beats_is_not_proven(seed):
    instance = drawn(seed)
    found, exact = exact_period_bound(instance), _Exact(instance)
    assert found >= Fraction(period_bound(instance)) * (1 - Fraction(1, 10**4))
    rng, times, best = np.random.default_rng(seed), TimeToTarget.of(instance), None
    for period in (1.0, *np.exp(rng.uniform(0, 6, 40)).tolist()):
        period = float(round(period)) if instance.whole else period
        step = times.step(period, instance.mixing) * (1.0 if instance.step_size else float(rng.uniform(0.9, 1.1)))
        plan = PeriodPlan(instance=instance.name, period=period, step_size=step)
        objective = evaluate(instance, plan, exact=True).objective
        if objective is not None:
            assert objective >= found
            best = objective if best is None else min(best, objective)
    assert best is not None
    assert exact.proves(found)
    assert not exact.proves(best * (1 + Fraction(1, 10**6)))


def test_two_valleys_of_whole_periods_are_both_seen():
    instance = instances.load("gossip/period-m16-two-valleys")
    best = evaluate(instance, instances.best("gossip/period-m16-two-valleys"), exact=True).objective
    assert best * (1 - Fraction(1, 10**7)) <= exact_period_bound(instance) <= best


def test_a_step_may_be_too_large():
    large = drawn(0).model_copy(update={"step_size": 1e3})
    with pytest.raises(InfeasibleError, match="no period reaches"):
        exact_period_bound(large)
