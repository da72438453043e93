"""Jobs with plans: the loop against brute force over tables of proven optima, and the papers' ways never better."""

import itertools
import json
from fractions import Fraction
from functools import cache

import pytest
from jobs_brute_force import brute_force
from volume import for_each, seeds, slow

import ddlopt
from ddlopt.instances.generators import generate
from ddlopt.models.cluster import JointInstance
from ddlopt.solvers.cluster.joint.plans import Plans
from ddlopt.solvers.contracts import Limits
from ddlopt.solvers.heuristic import Clock


def drawn(seed, **options):
    objective = ("makespan", "weighted_completion", "weighted_tardiness")[seed % 3]
    given = {"jobs": 3, "servers": 4, "widths": (2, 3), "objective": objective, "slack": 0.5} | options
    return generate("cluster", "joint", seed, **given)


def exact_times(instance):
    """Proven optima of all inner problems."""
    return {
        (place, choice.servers): max(1e-12, ddlopt.solve(instance.inner(choice), gap=1e-7, time_limit=60).objective)
        for place, workload in enumerate(instance.workloads)
        for choice in workload.choices
    }


@pytest.mark.parametrize("seed", seeds(2, 12))
def test_the_loop_finds_the_optimum(seed):
    instance = drawn(seed)
    times = exact_times(instance)
    best = float(brute_force(instance.at(lambda workload, choice: times[workload, choice.servers])))
    result = ddlopt.solve(instance, "refinement", time_limit=60, gap=1e-6)
    assert result.checked
    assert result.bound <= best * (1 + 1e-9)
    assert result.objective == pytest.approx(best, rel=1e-5, abs=1e-6)
    assert result.objective - result.bound <= 1e-5 * max(1.0, best)
    assert ddlopt.check(instance, result.solution, exact=True).feasible


@for_each(
    "options",
    [
        "plans=paper",
        slow("plans=best,widths=equal"),
        slow("widths=greedy,order=search"),
        slow("widths=search"),
        "widths=search,order=search",
    ],
)
def test_deciding_apart_is_never_better(options):
    found = ddlopt.solve(drawn(3), f"apart:{options}", time_limit=60)
    assert found.checked
    assert found.objective >= joint_bound() * (1 - 1e-9)


@cache
def joint_bound():
    return ddlopt.solve(drawn(3), "refinement", time_limit=60).bound


def test_a_plan_for_fewer_devices_serves_more_and_a_bound_for_more_bounds_fewer():
    instance = drawn(0, workloads=("tiny-step",), servers=8, widths=(2, 4, 8))
    plans = Plans(instance, Clock(Limits(), None), 1e-6)
    plans.sharpen([(0, 2)], lambda: False)
    narrow, wide = plans.known((0, 2)), plans.known((0, 8))
    assert narrow.answer is not None
    assert wide.upper <= narrow.upper
    wide.lower = narrow.upper
    plans._spread()
    assert narrow.lower == narrow.upper
    assert narrow.closed


def test_nothing_is_concluded_from_one_codesign_to_another():
    instance = drawn(0, workloads=("tiny-codesign",), widths=(2, 3))
    plans = Plans(instance, Clock(Limits(), None), 1e-6)
    plans.sharpen([(0, 2)], lambda: False)
    assert plans.known((0, 3)).answer is None


def test_what_was_found_is_kept_and_found_again(tmp_path):
    instance = drawn(1)
    first = ddlopt.solve(instance, f"refinement:kept={tmp_path}", time_limit=60)
    again = ddlopt.solve(instance, f"refinement:kept={tmp_path}", time_limit=60)
    assert again.objective == pytest.approx(first.objective)
    assert again.details["inner_solves"] < first.details["inner_solves"]
    for file in tmp_path.glob("*.json"):  # a folder that somebody has spoiled is no reason to fail
        file.write_text(json.dumps({"lower": 0.0}), encoding="utf-8")
    assert ddlopt.solve(instance, f"refinement:kept={tmp_path}", time_limit=60).objective == pytest.approx(
        first.objective
    )


SPOILED = (
    "",
    "[]",
    "5",
    '{"lower": 0}',
    '{"lower": "much"}',
    '{"lower": null}',
    '{"lower": Infinity}',
    '{"lower": 0}5',
)


@for_each("told", [each.replace("}", ', "answer": null}') for each in SPOILED] + ['{"lower": 0}'])
def test_a_spoiled_file_of_what_was_found_says_nothing(tmp_path, told):
    instance = drawn(0, workloads=("tiny-step",), servers=8, widths=(2, 4, 8))
    fresh = Plans(instance, Clock(Limits(), None), 1e-6, kept=str(tmp_path))
    for choice in fresh.pairs.values():
        fresh._file(choice).write_text(told, encoding="utf-8")
    again = Plans(instance, Clock(Limits(), None), 1e-6, kept=str(tmp_path))
    assert [own.lower for own in again.all_known()] == [own.lower for own in fresh.all_known()]


@pytest.mark.slow
def test_processes_give_the_same():
    instance = drawn(1)
    one, two = (ddlopt.solve(instance, "refinement", time_limit=120, threads=threads) for threads in (1, 2))
    assert two.objective == pytest.approx(one.objective, rel=1e-4)


def test_a_job_without_any_plan_is_infeasible():
    instance = drawn(0, workloads=("tiny-step",), jobs=1)
    small = instance.problems[0].changed(memory_bytes=1.0)
    result = ddlopt.solve(instance.changed(problems=[small]), "refinement", time_limit=60)
    assert result.status == "infeasible"
    assert f"jobs[0] ('{instance.jobs[0].name}') fits nowhere: no number of servers has a plan" in result.message


def lossy(jobs=3, crossing_bytes=0.0, **more):
    """Jobs of a network whose layers may be compressed, on two servers or three."""
    import numpy as np

    from ddlopt.instances.generators.codesign.random import random_job

    options = {"layers": 3, "strategies": 2, "reduction": 0.9, "compressors": 2, "error_slack": 0.8}
    problems = [random_job(np.random.default_rng(width), servers=width, degree=1, **options) for width in (2, 3)]
    choices = [{"servers": w, "problem": w - 2} | ({"crossing_bytes": crossing_bytes} if more else {}) for w in (2, 3)]
    workload = {"name": "lossy", "choices": choices}
    return JointInstance.from_data(
        {
            "name": "lossy",
            "servers": 5,
            "problems": problems,
            "workloads": [workload],
            "jobs": [{"name": f"j{k}", "workload": 0, "iterations": 10 + k} for k in range(jobs)],
        }
        | more
    )


def test_compression_last_finds_hosts_and_rates_anew_in_a_fabric():
    groups = [{"name": name, "hosts": hosts, "uplink_bytes_per_s": 1.0} for name, hosts in (("a", 2), ("b", 3))]
    plain = ddlopt.solve(lossy(), "apart:compression=last", time_limit=60)
    step = max(plain.solution.steps().values())
    instance = lossy(crossing_bytes=step * 0.4, fabric={"groups": groups})
    found = ddlopt.solve(instance, "apart:compression=last", time_limit=60)
    assert ddlopt.check(instance, found.solution, exact=True).feasible
    assert all(sum(count for _, count in run.places) == run.servers for run in found.solution.runs)


def test_compression_last_keeps_servers_and_order_and_no_job_ends_later():
    instance = lossy()
    found = {
        when: ddlopt.solve(instance, f"apart:compression={when}", time_limit=60)
        for when in ("never", "last", "first", "within")
    }
    joint = ddlopt.solve(instance, "refinement", time_limit=60)
    for each in found.values():
        assert ddlopt.check(instance, each.solution, exact=True).feasible
        assert each.objective >= joint.bound * (1 - 1e-9)
    never, last = found["never"].solution, found["last"].solution
    assert [run.servers for run in never.runs] == [run.servers for run in last.runs]
    assert last.steps().keys() == never.steps().keys()
    assert found["last"].objective < found["never"].objective * 0.999
    for one, other in zip(last.runs, never.runs, strict=True):
        assert Fraction(one.start) <= Fraction(other.start)
    inner = instance.problems[0]
    errors = {
        plan.servers: [
            layer.strategies[a].error for layer, a in zip(inner.layers, plan.answer.choices(inner), strict=True)
        ]
        for plan in never.plans
        if plan.servers == 2
    }
    assert not any(itertools.chain(*errors.values()))
