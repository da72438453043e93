"""Proofs for uniform plans: what holds is accepted, and nothing above the best of all plans is."""

import json
from fractions import Fraction

import pytest
from refusals import one_line
from step_cases import drawn, plans
from volume import for_each, seeds

import ddlopt
from ddlopt.certificates.deployment.step import StepCertificate
from ddlopt.certificates.deployment.step.ends import Ends
from ddlopt.certificates.deployment.step.lower import UNIT, Bounds, Shape, stages_of
from ddlopt.cli import run
from ddlopt.models.deployment.step.evaluate import evaluate_step
from ddlopt.models.deployment.step.places import members
from ddlopt.models.errors import RefutedError, SolutionError
from ddlopt.models.tolerances import FEASIBILITY_TOL
from ddlopt.solvers.deployment.step.prove import prove


def never():
    return False


def best_exactly(instance):
    """The best plan's step as a fraction, with the memory that the check lets pass; None if none fits."""
    found = [(plan, evaluate_step(instance, plan)) for plan in plans(instance)]
    fits = [(plan, each.objective) for plan, each in found if each.feasible]
    if not fits:
        return None
    least = min(time_s for _, time_s in fits)
    near = (plan for plan, time_s in fits if time_s < 1.001 * least)
    return min(evaluate_step(instance, plan, exact=True).objective for plan in near)


@for_each("seed", seeds(6, 150))
def test_the_optimum_is_proven_and_nothing_above_it(seed):
    instance = drawn(seed)
    best = best_exactly(instance)
    if best is None:
        StepCertificate(instance.name, instance.digest, Fraction(10**9)).check(instance, never)
        return
    StepCertificate(instance.name, instance.digest, best).check(instance, never)
    for more in (Fraction(1, 10**15), Fraction(1, 100), 9):
        with one_line(RefutedError, "less than the claim of"):
            StepCertificate(instance.name, instance.digest, best * (1 + more)).check(instance, never)


@for_each("seed", seeds(6, 150))
def test_no_bound_is_above_a_plan(seed):
    """Each of the bounds is asked of all plans, with a claim that is what the plan takes: none may exclude it."""
    instance = drawn(seed)
    for plan in [each for number, each in enumerate(plans(instance)) if number % 29 == 0]:
        found = evaluate_step(instance, plan, exact=True)
        if found.objective is None:
            continue
        bounds = Bounds(instance, plan, found.objective * (1 + Fraction(1, 10**15)))
        shape, inside = Shape(plan.pipeline, plan.interleaving, plan.data), members(instance, plan)
        assert bounds.known
        assert not bounds.all_are_slow()
        assert shape in bounds.shapes()
        assert not bounds.is_slow(shape)
        assert took(bounds, shape, plan, inside) < UNIT
        if found.details["memory_bytes"] <= bounds.room:
            assert not bounds.is_large(shape, plan.recomputed, plan.sharding)


def took(bounds, shape, plan, inside):
    """Parts of the claim."""
    ended = Ends(bounds).least(shape, plan.recomputed, plan.sharding, inside)
    return bounds.takes(shape, plan.recomputed, inside) + ended


@for_each("seed", seeds(6, 150))
def test_the_last_bounds_are_what_a_plan_takes(seed):
    """All but rounding, so that hardly a plan is left to be evaluated."""
    instance = drawn(seed)
    for plan in [each for number, each in enumerate(plans(instance)) if number % 23 == 0]:
        found = evaluate_step(instance, plan, exact=True)
        if found.objective is None or not found.objective:
            continue
        bounds = Bounds(instance, plan, found.objective)
        shape, inside = Shape(plan.pipeline, plan.interleaving, plan.data), members(instance, plan)
        assert UNIT - UNIT // 10**15 < took(bounds, shape, plan, inside) <= UNIT
        full = found.details["memory_bytes"] / Fraction(1 + FEASIBILITY_TOL)
        if full:
            for more, large in ((Fraction(1, 10**12), False), (-Fraction(1, 10**12), True)):
                odd = bounds_in(instance, plan, found.objective, full * (1 + more))
                assert odd.is_large(shape, plan.recomputed, plan.sharding) is large


def bounds_in(instance, plan, claim, memory_bytes):
    """Bounds where a device has so much memory."""
    bounds = Bounds(instance, plan, claim)
    bounds.room = memory_bytes * Fraction(1 + FEASIBILITY_TOL)
    return bounds


def test_bounds_exclude_something():
    """A slip that makes a bound useless would leave all proofs right, and slow."""
    for model, most in (("llama3-8b", 300), ("mixtral-8x7b", 1000)):
        name = f"deployment/step-{model}-dgx-h100"
        instance = ddlopt.load(name)
        best = Fraction(ddlopt.check(instance, ddlopt.instances.best(name), exact=True).objective)
        proof = StepCertificate(instance.name, instance.digest, best * Fraction(9999, 10000))
        assert proof.check(instance, never) < most


@for_each("seed", seeds(3, 60))
def test_a_single_stage_is_slow_where_its_blocks_are(seed):
    """Micro-batches times what blocks and ends compute and send in their groups, over the fastest tier."""
    instance = drawn(seed)
    fastest = max(Fraction(tier.bandwidth_bytes_per_s) for tier in instance.tiers)
    for plan in {(each.tensor, each.context, each.expert, each.data): each for each in plans(instance)}.values():
        bounds, shape = Bounds(instance, plan, Fraction(1)), Shape(1, 1, plan.data)
        if not bounds.known:
            continue
        sizes = ("tensor_bytes", int(plan.tensor > 1)), ("context_bytes", int(plan.context > 1)), (
            "expert_bytes", Fraction(plan.expert - 1, plan.expert),
        )  # fmt: skip
        least = []
        for _, plain, again in (*bounds.blocks, *bounds.ends):
            options = [plain, again] if again is not None and bounds.recomputes else [plain]
            least.append(min(
                Fraction(each.forward_s) + Fraction(each.backward_s)
                + sum(Fraction(getattr(each, name)) * part for name, part in sizes) / fastest
                for each in options
            ))  # fmt: skip
        taken = bounds.samples // plan.data * (sum(least[kind] for kind in instance.kinds) + sum(least[-2:]))
        if taken:
            for more, slow in ((-Fraction(1, 10**9), True), (Fraction(1, 10**9), False)):
                assert Bounds(instance, plan, taken * (1 + more)).is_slow(shape) is slow


def test_stages_have_their_blocks():
    instance = ddlopt.load("deployment/step-tiny-l8-k8")
    for pipeline, interleaving, recomputed in ((1, 1, 3), (2, 2, 1), (3, 1, 2)):
        stages = stages_of(instance, pipeline, interleaving, recomputed)
        assert sum(sum(stage.plain) + sum(stage.again) for stage in stages) == instance.size
        assert [stage.first for stage in stages] == [True] + [False] * (pipeline - 1)
    assert UNIT > 10**30


def test_from_the_command_line(tmp_path, capsys):
    name = "deployment/step-tiny-l4-k4"
    proof, plan = tmp_path / "proof.json", tmp_path / "plan.json"
    assert run(["certify", name, "--out", str(proof)]) == 0
    assert run(["solve", name, "--out", str(plan)]) == 0
    capsys.readouterr()
    assert run(["check", name, str(plan), "--certificate", str(proof)]) == 0
    assert "all of its plans" in capsys.readouterr().out
    data = json.loads(proof.read_text())
    proof.write_text(json.dumps(data | {"claim": str(Fraction(data["claim"]) * Fraction(101, 100))}))
    assert run(["check", name, str(plan), "--certificate", str(proof)]) != 0


def test_files_that_are_none(tmp_path):
    instance = ddlopt.load("deployment/step-tiny-l4-k4")
    data = json.loads(StepCertificate(instance.name, instance.digest, Fraction(1, 1000)).text)
    assert StepCertificate.from_data(data).check(instance, never) > 0
    for change in (
        {"order": []},
        {"claim": 0.001},
        {"claim": "1e9"},
        {"version": 2},
        {"format": "ddlopt plan certificate"},
    ):
        with pytest.raises(SolutionError):
            StepCertificate.from_data(data | change)


def test_who_writes_it_gives_up_where_a_plan_is_quicker():
    instance = ddlopt.load("deployment/step-tiny-l4-k4")
    plan = ddlopt.solve(instance).solution
    best = Fraction(ddlopt.check(instance, plan, exact=True).objective)
    assert prove(instance, plan, best, never) == StepCertificate(instance.name, instance.digest, best)
    assert prove(instance, plan, best * 2, never) is None
    assert prove(instance, plan, best, lambda: True) is None
