"""Steps of plans made exact: times and memory of their orders, and the bound that they keep to."""

import pipeline_cases
import pytest
import step_cases
from refusals import one_line
from volume import seeds

import ddlopt
from ddlopt.models.deployment import MicroBatchInstance, PipelineInstance, PipelinePlan
from ddlopt.models.deployment.orders_of_plans import busiest_s, order_instance
from ddlopt.models.deployment.pipeline.evaluate import evaluate_pipeline
from ddlopt.models.deployment.step.evaluate import chunk_parts, evaluate_step, stage_parts
from ddlopt.models.errors import OptionError
from ddlopt.solvers.catalogue import method
from ddlopt.solvers.contracts import Limits
from ddlopt.solvers.deployment.ordered_step import ordered_step


def plans_of(cases, seed, most=12):
    """Feasible plans of a drawn instance, spread over all of them."""
    instance = cases.drawn(seed)
    evaluate = evaluate_step if cases is step_cases else evaluate_pipeline
    good = [plan for plan in cases.plans(instance) if evaluate(instance, plan, exact=True).feasible]
    return instance, good[:: max(1, len(good) // most)]


@pytest.mark.parametrize("seed", seeds(6, 60))
def test_chunks_of_a_step_are_its_stages(seed):
    instance, plans = plans_of(step_cases, seed)
    for plan in plans:
        parts, stages = chunk_parts(instance, plan), stage_parts(instance, plan, exact=True)
        assert len(parts) == plan.pipeline * plan.interleaving
        for device, stage in enumerate(stages):
            own = parts[device :: plan.pipeline]
            assert sum(part.forward_s + part.backward_s for part in own) == stage.micro_batch_s
        orders = order_instance(instance, plan, weights=0.5)
        n = evaluate_step(instance, plan).details["micro_batches"]
        assert orders.micro_batches == n
        work = max(n * stage.micro_batch_s + stage.end_s for stage in stages)
        assert float(busiest_s(orders)) == pytest.approx(float(work), rel=1e-12)


@pytest.mark.parametrize("seed", seeds(5, 60))
def test_a_step_in_order_is_no_shorter_than_its_bounds(seed):
    """And 1F1B of the plan's own memory is an order: the best one is no worse."""
    instance, plans = plans_of(step_cases, seed, 3)
    for plan in plans:
        found = ordered_step(instance, plan, Limits())
        orders = order_instance(instance, plan)
        assert found.busiest_s <= found.bound_s * (1 + 1e-9)
        assert found.bound_s <= found.step_s * (1 + 1e-9)
        assert found.step_s >= evaluate_step(instance, plan).details["optimizer_s"]
        if plan.interleaving == 1:
            plain = method("1f1b", "deployment").solve(orders, Limits())
            assert plain.checked, plain.message
            assert found.step_s <= plain.objective * (1 + 1e-9)


@pytest.mark.parametrize("seed", seeds(5, 60))
def test_time_of_samples_bounds_the_step_of_a_pipeline(seed):
    instance, plans = plans_of(pipeline_cases, seed, 4)
    for plan in plans:
        value = evaluate_pipeline(instance, plan, exact=True).objective
        orders = order_instance(instance, plan)
        assert float(busiest_s(orders)) == pytest.approx(float(instance.micro_batches * value), rel=1e-12)
        found = ordered_step(instance, plan, Limits(5))
        assert found.step_s >= found.busiest_s * (1 - 1e-9)
        assert found.price >= -1e-9


def chain(times, replicas, samples, **fields):
    """Stages of a layer each, and a plan with so many copies of each."""
    option = {"name": "only", "kept_bytes": 1.0, "fixed_bytes": 0.5}
    instance = PipelineInstance.from_data(
        {
            "name": "chain",
            "layers": [
                {"name": f"layer {n}", "menus": [{"tensor": 1, "options": [option | {"time_s": t}]}]}
                for n, t in enumerate(times)
            ],
            "edges": [{"maker": n, "user": n + 1, "size_bytes": 0.0} for n in range(len(times) - 1)],
            "devices": sum(replicas),
            "memory_bytes": 9.0,
            "bandwidth_bytes_per_s": 1.0,
            "micro_batches": samples,
        }
        | fields
    )
    stages = [{"layers": [n], "replicas": d, "tensor": 1, "options": ["only"]} for n, d in enumerate(replicas)]
    return instance, PipelinePlan.from_data({"instance": "chain", "stages": stages})


def test_copies_of_stages_by_hand():
    """Two copies of a stage of 3 s (F 1, B 2), then one of 1.5 s, two samples.

    Stage 1 has work for 3 s from 1 on, and a copy's B is still to come: 6 s. Samples on four copies of each of two
    stages never meet, so that one way is as good as four.
    """
    instance, plan = chain([3.0, 1.5], [2, 1], 2)
    orders = order_instance(instance, plan)
    assert [chunk.device for chunk in orders.chunks] == [0, 2, 1, 2]
    assert (orders.chains, orders.micro_batches) == (((0, 1), (2, 3)), 1)
    # Two are in flight on a copy of the first stage; 8.5 bytes are left to activations, and a sample has 1.
    assert orders.memory_bytes == (8.5, 8.5, 8.5)
    assert ordered_step(instance, plan, Limits()).step_s == pytest.approx(6)
    instance, plan = chain([3.0, 3.0], [4, 4], 8)
    orders = order_instance(instance, plan)
    assert (len(orders.chains), orders.devices, orders.micro_batches) == (1, 2, 2)
    assert ordered_step(instance, plan, Limits()).step_s == pytest.approx(9)
    instance, plan = chain([3.0, 3.0, 3.0], [6, 4, 2], 12)
    orders = order_instance(instance, plan)
    assert (len(orders.chains), orders.devices, orders.micro_batches) == (6, 3 + 2 + 1, 1)


def test_what_is_sent_and_reduced_by_hand():
    """An edge of 3 bytes costs both stages 3 s in F and in B; copies all-reduce 8 bytes in 4 (d - 1) / d of that."""
    instance, plan = chain([3.0, 6.0], [2, 2], 4)
    data = instance.model_dump(mode="json")
    data["edges"][0]["size_bytes"] = 3.0
    data["layers"][1]["menus"][0]["options"][0] |= {"weight_bytes": 8.0, "gathered": [[0, 2.0]]}
    instance = PipelineInstance.from_data(data)
    orders = order_instance(instance, plan, weights=0.25, freed=0.5)
    first, second = orders.chunks
    assert (first.forward_s, first.backward_s, first.weights_s) == pytest.approx((1 + 3, 1.5 + 3, 0.5))
    assert (second.forward_s, second.backward_s, second.weights_s) == pytest.approx((2 + 5, 3 + 5, 1))
    assert (second.held_bytes, second.freed_bytes) == (1, 0.5)
    assert orders.optimizer_s == pytest.approx((0, 16))
    assert busiest_s(orders) == pytest.approx(4 * evaluate_pipeline(instance, plan).objective)


@pytest.mark.parametrize("share", [{"weights": 1.5}, {"freed": -0.1}])
def test_shares_are_shares(share):
    instance, plan = chain([1.0], [1], 1)
    with pytest.raises(OptionError) as error:
        order_instance(instance, plan, **share)
    one_line(error, "it must be 0 to 1")


def test_methods_say_the_step_of_their_best_plans():
    found = ddlopt.solve("deployment/step-tiny-l8-k8", "step-enumeration:orders=4,weights=0.5")
    plain = ddlopt.solve("deployment/step-tiny-l8-k8", "step-enumeration")
    assert (found.objective, found.bound) == (plain.objective, plain.bound)
    details = found.details
    assert details["ordered_step_bound_s"] <= details["ordered_step_s"] * (1 + 1e-9)
    assert details["least_ordered_step_s"] <= details["ordered_step_s"]
    assert 1 <= details["least_ordered_plan"] <= 4
    found = ddlopt.solve("deployment/pipeline-tiny-l4-k4", "pipeline-ideals:order=true")
    assert found.details["ordered_step_s"] == pytest.approx(0.1585656)
    assert found.details["price_of_order"] == pytest.approx(0.1585656 / (8 * found.objective) - 1)


def test_a_plan_is_written_as_an_order_to_be_found(tmp_path):
    path = tmp_path / "order.json"
    solution = ddlopt.solve("deployment/pipeline-tiny-l4-k4").solution
    ddlopt.export_plan("deployment/pipeline-tiny-l4-k4", solution, "micro-batches", out=path, weights=0.5)
    instance = ddlopt.load(path)
    assert isinstance(instance, MicroBatchInstance)
    assert ddlopt.solve(instance).objective == pytest.approx(0.153541266667)


def test_the_best_plans_are_those_of_an_enumeration():
    """As many as asked, none twice, the best first: what all plans one by one give."""
    from ddlopt.solvers.deployment.step.enumeration import Search, Space
    from ddlopt.solvers.heuristic import Clock

    for seed in range(2):
        instance = step_cases.drawn(seed)
        search = Search(instance, Space(), Clock(Limits(), None), keep=3)
        least = search.run()
        every = [evaluate_step(instance, plan, exact=True) for plan in step_cases.plans(instance)]
        values = sorted(each.objective for each in every if each.feasible)
        kept = [seconds for seconds, _ in search.kept]
        assert kept == sorted(kept)
        assert len(set(search.kept)) == len(kept) == min(3, len(kept))
        if values:
            assert least == kept[0] == pytest.approx(float(values[0]), rel=1e-9)
            assert all(value >= float(values[0]) - 1e-9 for value in kept)
        else:
            assert kept == []
