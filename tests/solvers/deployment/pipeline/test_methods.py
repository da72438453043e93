"""Methods for pipelines against all plans, what heuristics lose, and what does not fit."""

import itertools
import math
import random

import pytest
from pipeline_cases import best_of_all, drawn, tight
from pipeline_ideals import best_of_sequences
from volume import for_each, seeds

import ddlopt
from ddlopt.instances.generators.deployment import generate
from ddlopt.models.deployment import PipelineInstance
from ddlopt.models.deployment.pipeline.evaluate import evaluate_pipeline
from ddlopt.models.deployment.pipeline.stages import Stages
from ddlopt.solvers.catalogue import method
from ddlopt.solvers.contracts import Limits, Status
from ddlopt.solvers.deployment.pipeline.ideal_labels import LabelChains
from ddlopt.solvers.deployment.pipeline.ideal_program import PipelineProgram
from ddlopt.solvers.heuristic import Clock

EXACT = Limits(gap=0)


def near(value, best):
    return value == pytest.approx(float(best), rel=1e-9, abs=1e-12)


@for_each("seed", seeds(13, 200))
def test_the_program_finds_the_best_of_all_plans(seed):
    instance = drawn(seed)
    best, found = best_of_all(instance), PipelineProgram().solve(instance, EXACT)
    if best is None:
        assert found.status is Status.INFEASIBLE
        return
    assert found.checked
    assert near(found.objective, best)
    assert found.bound <= float(best)
    assert near(found.bound, best)
    assert evaluate_pipeline(instance, found.solution, exact=True).feasible


@for_each("seed", seeds(12, 60))
def test_all_methods_agree(seed):
    instance = drawn(seed + 500, most=3, options=3)
    best = best_of_all(instance)
    for name in ("stage-path", "piper", "equal-split"):
        found = method(name, "deployment").solve(instance, EXACT)
        if best is None:
            assert found.solution is None
        elif found.solution is not None:
            assert found.objective >= float(best) * (1 - 1e-9)
        if name == "stage-path" and best is not None:
            assert found.objective == pytest.approx(float(best), rel=1e-6)


@for_each("seed", [5, *seeds(12, 120)])
def test_what_the_check_takes_for_rounding_is_a_plan(seed):
    """0.1 and 0.2 bytes fit into 0.3, though their sum is above it in rational numbers and in floating point."""
    instance = tight(seed)
    best = best_of_all(instance, exact=False)
    for name in ("pipeline-ideals", "stage-path"):
        found = method(name, "deployment").solve(instance, EXACT)
        assert (found.status is Status.INFEASIBLE) == (best is None), name
        if best is not None:
            assert found.objective == pytest.approx(best, rel=1e-6, abs=1e-9)
            assert found.bound <= best * (1 + 1e-6)


@for_each("seed", seeds(8, 40))
def test_cuts_of_one_order_are_plans_and_on_a_chain_all_of_them(seed):
    instance = drawn(seed + 900)
    line, every = (PipelineProgram(line=each).solve(instance, EXACT) for each in (True, False))
    if line.solution is not None:
        assert line.objective >= every.objective * (1 - 1e-9)
        assert line.status is not Status.OPTIMAL or near(line.objective, every.objective)
    order = Stages(instance).prefixes()
    assert len(order) == instance.size + 1
    if Stages(instance).ideals(instance.size + 1) == order and every.solution is not None:
        assert near(line.objective, every.objective)


def one_stage(memory_bytes, options):
    """Two layers on one device, with (time, memory) for every option of each."""
    layers = [
        {
            "name": f"layer {place}",
            "menus": [
                {
                    "tensor": 1,
                    "options": [
                        {"name": str(number), "time_s": time_s, "fixed_bytes": size}
                        for number, (time_s, size) in enumerate(own)
                    ],
                }
            ],
        }
        for place, own in enumerate(options)
    ]
    data = {"name": "one", "layers": layers, "devices": 1, "memory_bytes": memory_bytes}
    return PipelineInstance.from_data({**data, "bandwidth_bytes_per_s": 1, "micro_batches": 1})


def test_piper_s_greedy_loses_where_a_cheap_change_is_not_enough():
    # 6 bytes too many: the change of the first saves 5 for 1 second, then the second's costs 9 more for 6.
    instance = one_stage(14, [[(1, 10), (2, 5)], [(1, 10), (10, 4)]])
    assert PipelineProgram().solve(instance, EXACT).objective == 11
    assert method("piper", "deployment").solve(instance, EXACT).objective == 12


def test_many_layers_that_are_alike_are_a_knapsack():
    # 7 of 10 layers have to be lean: 3 + 7 · 2.
    instance = one_stage(10 * 10 - 7 * 5, [[(1, 10), (2, 5)]] * 10)
    found = PipelineProgram().solve(instance, EXACT)
    assert found.objective == 3 + 7 * 2
    (stage,) = found.solution.stages
    assert sorted(stage.options) == ["0"] * 3 + ["1"] * 7


def test_what_does_not_fit_says_the_least_memory():
    instance = one_stage(8, [[(1, 10), (2, 5)]] * 2)
    found = ddlopt.solve(instance)
    assert found.status is Status.INFEASIBLE
    assert "no plan fits into 8 bytes of each of 1 devices; the least memory is 10" in found.message
    two = instance.model_copy(update={"devices": 2, "micro_batches": 2})
    assert ddlopt.solve(two).objective == 2
    none = PipelineProgram().solve(one_stage(4, [[(1, 10), (2, 5)]]), EXACT)
    assert "its least memory is 5 bytes" in none.message
    assert method("piper", "deployment").solve(instance, EXACT).solution is None


def test_graphs_with_many_ideals_are_cut_along_an_order():
    layer = {"menus": [{"tensor": 1, "options": [{"name": "only", "time_s": 1.0}]}]}
    data = {"name": "wide", "layers": [{"name": f"l{n}", **layer} for n in range(12)], "devices": 4}
    wide = PipelineInstance.from_data(data | {"memory_bytes": 1, "bandwidth_bytes_per_s": 1, "micro_batches": 1})
    assert "more than 2000 ideals" in PipelineProgram(most_ideals=2000).refuses(wide)
    found = PipelineProgram(line=True).solve(wide, EXACT)
    assert found.checked
    assert found.objective >= found.bound == pytest.approx(3)


def test_an_equal_split_by_hand():
    instance = generate("pipeline", 1, layers=6, devices=4, tensors=(1,), micro_batches=4, memory=9.0)
    found = method("equal-split", "deployment").solve(instance, EXACT).solution
    sizes = [len(stage.layers) for stage in found.stages]
    assert sum(sizes) == 8
    assert max(sizes) - min(sizes) <= 1
    assert len({(stage.replicas, stage.tensor, stage.options[0]) for stage in found.stages}) == 1
    alone = method("equal-split:most_stages=1", "deployment").solve(instance, EXACT).solution
    assert len(alone.stages) == 1


def test_time_that_is_up_leaves_a_bound():
    instance = generate("pipeline", 1, layers=24, devices=32)
    found = PipelineProgram().solve(instance, Limits(time_s=1e-9))
    assert found.bound is not None
    assert found.status in (Status.NO_SOLUTION, Status.FEASIBLE)


def test_a_stage_that_takes_too_long_to_search_is_asked_for_its_time_and_barred():
    """Ten of twenty layers have to be lean; no bound tells that nine and a half are none, and there are many nines."""
    instance = one_stage(61, [[(0, 4), (1, 2)]] * 20)
    chains = LabelChains(Stages(instance), (0, (1 << 20) - 1), Clock(Limits(), None))
    assert chains.within(9.9) is None
    assert len(chains.barred) == 1
    assert chains.load_s(chains.within(10.1)) == 10


@for_each("seed", seeds(60, 3000))
def test_a_stage_is_faster_than_a_limit_exactly_if_some_of_its_options_are(seed):
    draw = random.Random(seed)
    sizes, times = draw.choice([(9, 9), (40, 3), (3, 40)])
    options = [
        [(draw.randint(0, times), draw.randint(0, sizes)) for _ in range(draw.randint(1, 3))]
        for _ in range(draw.randint(1, 5))
    ]
    memory = draw.randint(1, 1 + len(options) * sizes // 2)
    instance = one_stage(memory, options)
    mixed = [list(zip(*choice, strict=True)) for choice in itertools.product(*options)]
    best = min((sum(time) for time, size in mixed if sum(size) <= memory), default=math.inf)
    chains = LabelChains(Stages(instance), (0, (1 << len(options)) - 1), Clock(Limits(), None))
    for limit_s in (best + 0.5, best, best - 0.5):
        if 0 < limit_s < math.inf:
            assert (chains.within(limit_s) is not None) == (limit_s > best)
    # The search itself decides, without exact times of stages.
    assert not chains.barred


@for_each("seed", seeds(2, 40))
def test_graphs_of_eight_layers_on_eight_devices_have_the_best_of_all_sequences(seed):
    draw = random.Random(seed)
    small = drawn(seed, most=8, options=2)
    while small.size < (6 if seed == 0 else 8):
        seed += 1000
        small = drawn(seed, most=8, options=2)
    instance = small.changed(devices=8, micro_batches=draw.choice([4, 6, 8]), memory_bytes=draw.choice([12, 20, 40]))
    best, found = best_of_sequences(instance), PipelineProgram().solve(instance, EXACT)
    assert (best is None) == (found.status is Status.INFEASIBLE)
    assert best is None or (near(found.objective, best) and near(found.bound, best))
