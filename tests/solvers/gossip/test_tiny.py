"""Whatever is tiny is proven by the default method, and is what looking at every answer finds."""

from itertools import combinations

import exchange_cases
import numpy as np
import pytest
from volume import for_each

import ddlopt
from ddlopt.models.gossip import CirculantGraph, CirculantInstance, PeriodInstance, PeriodPlan, evaluate


def exchanges(seed):
    rng = np.random.default_rng(seed)
    steps = int(rng.integers(2, 9))
    more = {"sends": int(rng.integers(0, steps + 1))} if seed % 2 else {"send_cost": float(rng.exponential(5.0))}
    points = exchange_cases.walk(seed, steps, drift=seed % 3)
    asked = exchange_cases.instance(points, norm=("squared", "plain")[seed // 2 % 2], **more)
    return asked, exchange_cases.least(asked)


def circulants(seed):
    nodes, degree = 3 + seed % 14, 2 + seed // 14 % 5
    asked = CirculantInstance(name="tiny", nodes=nodes, degree=min(degree, nodes - 1))
    every = [each for r in range(nodes) for each in combinations(range(1, nodes // 2 + 1), r)]
    checked = [evaluate(asked, CirculantGraph(instance="tiny", generators=each)) for each in every]
    return asked, max(float(each.objective) for each in checked if each.feasible)


def periods(seed):
    """Whole periods with a given step: each of them."""
    rng = np.random.default_rng(seed)
    asked = PeriodInstance(
        name="tiny",
        workers=int(rng.integers(1, 17)),
        compute_s=1.0,
        communication_s=float(rng.uniform(0, 30)),
        mixing=float(rng.uniform(0, 0.9)),
        target=1.0,
        step_size=float(rng.uniform(0.05, 0.25)),
        whole=True,
    )
    plans = [PeriodPlan(instance="tiny", period=tau, step_size=asked.step_size) for tau in range(1, 500)]
    checked = [evaluate(asked, plan) for plan in plans]
    values = [float(each.objective) for each in checked if each.feasible and each.objective is not None]
    return asked, min(values)


@for_each("drawn", [exchanges, circulants, periods])
@for_each("seed", range(200))
def test_all_that_is_tiny_is_proven(seed, drawn):
    asked, optimum = drawn(seed)
    found = ddlopt.solve(asked, gap=1e-5, time_limit=600)
    assert found.status == "optimal"
    assert float(found.objective) == pytest.approx(optimum, rel=1e-5, abs=1e-12)
