"""Methods for training steps against all plans, and what does not fit."""

import pytest
from step_cases import best_of_all, drawn, plans
from volume import for_each, seeds

import ddlopt
from ddlopt.models.deployment import StepInstance
from ddlopt.models.deployment.step.evaluate import evaluate_step
from ddlopt.solvers.catalogue import method
from ddlopt.solvers.contracts import Limits, Status
from ddlopt.solvers.deployment.step.advice import advice
from ddlopt.solvers.deployment.step.enumeration import StepEnumeration

EXACT = Limits(gap=0)
RULES = ("megatron-rule", "fully-sharded", "replicated-data", "alpa-stages", "galvatron-grid", "calculon-grid")


def near(value, best):
    return value == pytest.approx(best, rel=1e-9, abs=1e-12)


@for_each("seed", seeds(8, 400))
def test_the_enumeration_finds_the_best_of_all_plans(seed):
    instance = drawn(seed)
    best, found = best_of_all(instance), StepEnumeration().solve(instance, EXACT)
    if best is None:
        assert found.status is Status.INFEASIBLE
        return
    assert found.checked
    assert near(found.objective, best)
    assert found.bound <= best
    assert near(found.bound, best)


@for_each("seed", seeds(6, 60))
def test_rules_find_plans_of_their_own_kind(seed):
    instance = drawn(seed + 1000)
    best = StepEnumeration().solve(instance, EXACT).objective
    for name in RULES:
        found = method(name, "deployment").solve(instance, EXACT)
        if found.solution is None:
            continue
        plan = found.solution
        assert found.checked
        assert found.objective >= best * (1 - 1e-9)
        if name in ("fully-sharded", "replicated-data"):
            assert (plan.tensor, plan.pipeline, plan.expert) == (1, 1, 1)
            assert plan.sharding == (3 if name == "fully-sharded" else 0)
        else:
            assert plan.devices == instance.devices
        if name in ("alpa-stages", "galvatron-grid"):
            assert plan.interleaving == 1


@for_each("seed", seeds(6, 60))
def test_the_best_of_the_replicated_is_that_of_all_such_plans(seed):
    instance = drawn(seed + 2000)
    own = [
        plan
        for plan in plans(instance)
        if (plan.tensor, plan.context, plan.pipeline, plan.expert, plan.sharding) == (1, 1, 1, 1, 0)
    ]
    found = [evaluate_step(instance, plan) for plan in own]
    best = min((each.objective for each in found if each.feasible), default=None)
    told = method("replicated-data", "deployment").solve(instance, EXACT).objective
    assert told is None if best is None else near(told, best)


def large(**changes):
    """Eight blocks that fit on a device only with all that saves memory."""
    options = [
        {"name": "none", "forward_s": 1, "backward_s": 2, "kept_bytes": 10},
        {"name": "selective", "forward_s": 1, "backward_s": 2.5, "kept_bytes": 8},
        {"name": "full", "forward_s": 1, "backward_s": 3, "kept_bytes": 1, "transient_bytes": 10},
    ]
    end = {"ways": [{"tensor": 1, "micro_batch": 1, "parameters": 0, "options": [options[0] | {"kept_bytes": 0}]}]}
    data = {
        "name": "large",
        "embedding": {"name": "embedding"} | end,
        "blocks": [
            {"name": "b", "count": 8, "ways": [{"tensor": 1, "micro_batch": 1, "parameters": 4, "options": options}]}
        ],
        "head": {"name": "head"} | end,
        "devices": 4,
        "memory_bytes": 190,
        "tiers": [{"name": "server", "size": 4, "bandwidth_bytes_per_s": 8}],
        "global_batch": 8,
    }
    return StepInstance.from_data(data | changes)


@for_each(
    ("memory_bytes", "taken"),
    [
        (2000, {"megatron-rule": (1, 4, 1), "fully-sharded": (1, 4, 3), "replicated-data": (1, 4, 0)}),
        # A copy's state is 32 (2 + 4 + 12 / 4) = 288, and 80 are kept; on two stages 16 (2 + 4 + 12 / 2) = 192.
        (340, {"megatron-rule": (2, 2, 1), "alpa-stages": (1, 4, 1), "fully-sharded": (1, 4, 3)}),
        (250, {"megatron-rule": (4, 1, 0), "alpa-stages": (2, 2, 1), "galvatron-grid": (1, 4, 3)}),
    ],
)
def test_rules_take_the_degrees_that_they_say(memory_bytes, taken):
    """Stages, copies and what is sharded: Megatron's rule makes no block again while more stages do."""
    instance = large(memory_bytes=memory_bytes, sharding=[0, 1, 3])
    for name, degrees in taken.items():
        plan = method(name, "deployment").solve(instance, EXACT).solution
        assert (plan.pipeline, plan.data, plan.sharding) == degrees, name


def test_as_few_blocks_as_fit_are_made_again():
    # State is 32 (2 + 4 + 12 / 4) = 288 with a sharded optimizer on all; what is left of 320 + 20 holds ...
    instance = large(memory_bytes=288 + 10 + 53, sharding=[1], interleaving=1)
    found = StepEnumeration().solve(instance, EXACT)
    evaluation = evaluate_step(instance, found.solution)
    assert found.solution.pipeline > 1 or found.solution.recomputed == 3
    assert evaluation.feasible
    fewer = found.solution.model_copy(update={"recomputed": max(0, found.solution.recomputed - 1)})
    if found.solution.recomputed:
        assert not evaluate_step(instance, fewer).feasible


def test_what_does_not_fit_says_the_least_memory():
    instance = large(memory_bytes=100)
    found = ddlopt.solve(instance)
    assert found.status is Status.INFEASIBLE
    best = min(
        float(evaluate_step(instance, plan).details["memory_bytes"])
        for plan in plans(instance)
        if evaluate_step(instance, plan).objective is not None
    )
    assert f"the least memory is {best:.4g} bytes" in found.message
    none = method("replicated-data", "deployment").solve(instance, EXACT)
    assert none.solution is None
    assert "no such plan fits into 100 bytes of each of 4 devices" in none.message


def test_advice_says_what_would_make_it_fit():
    instance = large(memory_bytes=320)
    plan = next(each for each in plans(instance) if (each.data, each.sharding, each.option) == (4, 1, "none"))
    told = " ".join(advice(instance, plan))
    assert "does not fit; it would with" in told
    for word in ("sharding 2", "all blocks recomputed", "2 stages"):
        changed = {
            "sharding 2": {"sharding": 2},
            "all blocks recomputed": {"recomputed": 8},
            "2 stages": {"pipeline": 2, "data": 2},
        }[word]
        fits = evaluate_step(instance, plan.model_copy(update=changed)).feasible
        assert (word in told) == fits
    tight = large(memory_bytes=50)
    assert "not even with all of them" in " ".join(advice(tight, plan))


def test_time_that_is_up_leaves_a_bound():
    found = StepEnumeration().solve(large(memory_bytes=400), Limits(time_s=1e-9))
    assert found.bound is not None
    assert found.status in (Status.NO_SOLUTION, Status.FEASIBLE)


def test_options_that_only_some_degrees_have():
    """Micro-batches of one keep all they need; those of two may drop some of it, which is faster here."""
    none = {"name": "none", "forward_s": 1, "backward_s": 2, "kept_bytes": 1}
    ways = [
        {"tensor": 1, "micro_batch": 1, "parameters": 4, "options": [none]},
        {
            "tensor": 1,
            "micro_batch": 2,
            "parameters": 4,
            "options": [none, none | {"name": "selective", "forward_s": 0}],
        },
    ]
    ends = {
        name: {"name": name, "ways": [way | {"options": [none], "parameters": 0} for way in ways]}
        for name in ("embedding", "head")
    }
    instance = large(blocks=[{"name": "b", "count": 2, "ways": ways}], **ends)
    for name in ("step-enumeration", "plan-choice"):
        found = method(name, "deployment").solve(instance, EXACT)
        assert (found.status, found.solution.option) == (Status.OPTIMAL, "selective")
        assert near(found.objective, best_of_all(instance))


def test_what_fits_nowhere_is_infeasible():
    for name in ("step-enumeration", "plan-choice"):
        assert method(name, "deployment").solve(large(memory_bytes=1), EXACT).status is Status.INFEASIBLE
