"""Strategies and symmetric links in one program: what it says is what a plan takes."""

import numpy as np
import pytest

from ddlopt import instances
from ddlopt.frontier.codesign.joint.symmetric_plans import SymmetricPlans, SymmetricProgram, symmetric_plan
from ddlopt.frontier.topology.symmetry.cayley import AbelianGroup
from ddlopt.models.codesign import evaluate
from ddlopt.models.codesign.formulations.rows.coupling import plan_of
from ddlopt.models.codesign.formulations.strategy_bound import StrategyBound
from ddlopt.solvers.backends.matrix import linear_model
from ddlopt.solvers.codesign.data_parallel import data_parallel
from ddlopt.solvers.contracts import Limits
from ddlopt.solvers.exact import build_model
from ddlopt.solvers.heuristic import Clock
from ddlopt.solvers.topology.balance.balance import Balance


def _programs(instance, orders):
    model = build_model(instance.family, StrategyBound(), instance)
    return SymmetricPlans(instance, model, linear_model(model), AbelianGroup(orders))


def _judged(instance, found):
    choices, design, busiest = found
    design = design.design() if isinstance(design, Balance) else design
    judged = evaluate(instance, plan_of(instance, choices, design))
    assert judged.feasible, judged.violations
    assert judged.details["max_link_load_bytes"] == pytest.approx(busiest)
    return judged


@pytest.mark.slow
def test_whole_strategies_take_no_less_than_parts_and_what_the_evaluation_finds():
    instance = instances.load("codesign/candle-n12-d4")
    plans = _programs(instance, (3, 2, 2))
    bound = instances.record("codesign/candle-n12-d4").bound.value
    for generators in ([1, 2, 6, 8], [1, 3, 8, 10]):
        program = SymmetricProgram(plans, np.array(generators), np.ones(4, dtype=np.int64))
        parts = program.solve(20, 20, 0.0, np.inf)
        judged = _judged(instance, program.plan(30.0))
        assert bound * (1 - 1e-9) <= min(parts, judged.objective)
        assert judged.objective <= parts * 1.005
        # The program for other generators is not disturbed by what was solved before.
        again = SymmetricProgram(_programs(instance, (3, 2, 2)), program.generators, program.counts)
        assert again.solve(20, 20, 0.0, np.inf) == pytest.approx(parts, rel=2e-3)


@pytest.mark.slow
def test_the_best_of_a_search_is_a_plan():
    instance = instances.load("codesign/candle-n12-d4")
    known = instances.best("codesign/candle-n12-d4").choices(instance)
    judged = _judged(instance, symmetric_plan(instance, [known], 0, Clock(Limits(), None), 0.0, 30))
    assert judged.objective < 0.3232  # 0.3315 without


def test_jobs_that_differ_from_server_to_server_have_none():
    instance = instances.load("codesign/dlrm-n12-d4")
    known = instances.best("codesign/dlrm-n12-d4").choices(instance)
    assert symmetric_plan(instance, [known], 0, Clock(Limits(), None), 0.0, 1) is None
    few = instances.load("codesign/tiny-cosets-n6-d2")
    assert symmetric_plan(few, [data_parallel(few)], 0, Clock(Limits(), None), 0.0, 1) is None
