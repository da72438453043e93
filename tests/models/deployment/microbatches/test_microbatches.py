"""Orders of micro-batches: what is refused, what the check finds, values by hand, bounds against all orders."""

from fractions import Fraction

import pytest
from microbatch_cases import best_of_all, drawn, orders
from refusals import one_line
from volume import seeds

from ddlopt.instances.generators.deployment import generate
from ddlopt.models.deployment import MicroBatchInstance, MicroBatchOrder, bound, evaluate
from ddlopt.models.deployment.microbatches.bounds import exact_order_bound
from ddlopt.models.deployment.microbatches.evaluate import evaluate_order
from ddlopt.models.errors import InfeasibleError, InstanceError
from ddlopt.solvers.catalogue import method
from ddlopt.solvers.contracts import Limits


def pipeline(**options):
    return generate("microbatches", 0, **({"stages": 2, "micro_batches": 2} | options))


def changed(change):
    data = pipeline(objective="barrier").model_dump()
    data["chunks"], data["edges"] = list(data["chunks"]), list(data["edges"])
    change(data)
    return data


REFUSED = [
    (lambda d: d["edges"].append({"maker": 1, "user": 0}), "the chunks form a cycle: chunk.0 -> chunk.1 -> chunk.0"),
    (lambda d: d["edges"].append({"maker": 0, "user": 0}), "edges[1] leads away from chunk 0, as another one does"),
    (lambda d: d["edges"].append({"maker": 0, "user": 7}), "edges[1] names chunk 7, but there are 2 (0..1)"),
    (lambda d: d["chunks"][0].update(forward_s=-1.0), "chunks[0].forward_s"),
    (lambda d: d["chunks"][1].update(weights_s=-1.0), "chunks[1].weights_s"),
    (lambda d: d["edges"][0].update(backward_s=-0.5), "edges[0].backward_s"),
    (lambda d: d["chunks"][1].update(device=5), "is on device 5, but there are 2 (0..1)"),
    (lambda d: d["chunks"][1].update(device=0), "device 1 has no chunk"),
    (lambda d: d["chunks"][1].update(name="chunk.0"), "is named like chunks[0]"),
    (lambda d: d["chunks"][1].update(freed_bytes=3.0), "freed_bytes is 3, more than held_bytes, 1"),
    (lambda d: d.update(optimizer_s=[1.0]), "optimizer_s has 1 times, and memory_bytes 2 devices"),
    (lambda d: d.update(optimizer_s=[]), "objective is 'barrier', which needs optimizer_s"),
    (lambda d: d.update(micro_batches=0), "micro_batches"),
    (lambda d: d.update(micro_batches=10**9), "would need about"),
    (lambda d: d.update(objective="speed"), "objective"),
    (lambda d: d.update(memory_bytes=[1.0, -2.0]), "memory_bytes[1]"),
]


@pytest.mark.parametrize(("change", "words"), REFUSED)
def test_refused(change, words):
    with pytest.raises(InstanceError) as error:
        MicroBatchInstance.from_data(changed(change))
    one_line(error, words)


def order_of(*words):
    return MicroBatchOrder(instance="x", orders=tuple(tuple(word.split()) for word in words))


GOOD = order_of("0F0 0F1 0I0 0W0 0I1 0W1", "1F0 1I0 1F1 1I1 1W0 1W1")


def test_a_value_by_hand():
    r"""Two devices, two micro-batches, unit times.

    Device 0: F at 0 and 1, B at 3 and 5; device 1: F, B at 1, 2, F, B at 3, 4, then W twice.
    """
    assert evaluate_order(pipeline(), GOOD).objective == 7
    found = evaluate_order(pipeline(objective="span"), GOOD, exact=True)
    assert (found.objective, found.details["makespan_s"], found.details["largest_memory_bytes"]) == (7, 7, 2)
    found = evaluate_order(pipeline(objective="barrier", optimizer_s=2.5), GOOD, exact=True)
    assert found.objective == Fraction(19, 2)


BROKEN = [
    (GOOD.orders[0], "every device has an order"),
    (("0F0 0F1 0I0 0W0 0I1", GOOD.orders[1]), "every pass runs once"),
    (("0F0 0F1 0I0 0W0 0I1 0W1 0W1", GOOD.orders[1]), "every pass runs once"),
    (("0F0 0F1 0I0 0W0 0I1 0W2", GOOD.orders[1]), "passes are known"),
    (("0F0 0F1 0I0 0W0 0I1 0B1", GOOD.orders[1]), "passes are known"),
    (("0F0 0F1 0I0 0W0 0I1 W", GOOD.orders[1]), "passes are known"),
    (("0F0 0F1 0I0 0W0 0I1 1W1", "1F0 1I0 1F1 1I1 1W0 0W1"), "passes run on the device of their chunk"),
    (("0I0 0F0 0F1 0W0 0I1 0W1", GOOD.orders[1]), "no pass waits for itself"),
    (("0F0 0F1 0W0 0I0 0I1 0W1", GOOD.orders[1]), "no pass waits for itself"),
    (("0F0 0I0 0F1 0W0 0I1 0W1", "1F0 1F1 1I0 1I1 1W0 1W1"), "no pass waits for itself"),
]


@pytest.mark.parametrize(("words", "kind"), BROKEN)
def test_what_is_wrong_is_found(words, kind):
    words = words if kind == "every device has an order" else tuple(words)
    broken = MicroBatchOrder(
        instance="x",
        orders=(words,)
        if kind == "every device has an order"
        else tuple(tuple(word.split()) if isinstance(word, str) else word for word in words),
    )
    found = evaluate_order(pipeline(), broken)
    assert found.objective is None
    assert kind in {each.kind for each in found.violations}


def test_memory_is_that_of_the_moment():
    tight = pipeline(memory=1.5)
    assert [each.kind for each in evaluate_order(tight, GOOD).violations] == ["memory suffices"]
    # B gives half back as it ends, just before F of the other one.
    half = order_of("0F0 0I0 0W0 0F1 0I1 0W1", "1F0 1I0 1F1 1I1 1W0 1W1")
    found = evaluate_order(tight, half, exact=True)
    assert found.feasible
    assert found.details["largest_memory_bytes"] == Fraction(3, 2)
    late = order_of("0F0 0I0 0W0 0F1 0I1 0W1", "1F0 1I0 1F1 1I1 1W0 1W1")
    assert not evaluate_order(pipeline(memory=1.0), late).feasible


def test_a_span_begins_as_late_as_it_can():
    """With transfers the mean over two devices is larger than each by itself."""
    instance = pipeline(objective="span", transfer_s=3.0, memory=2)
    for order in orders(instance):
        found = evaluate_order(instance, order, exact=True)
        if found.objective is not None:
            assert found.objective <= found.details["makespan_s"]
            assert found.objective >= 6


@pytest.mark.parametrize("p", [1, 2, 3, 5])
@pytest.mark.parametrize("n", [1, 3, 8])
def test_the_theorem_of_unit_times(p, n):
    r"""Of the span: 3 n + max(0, 2 p - 1 - min(n, M)), and ZB orders attain it."""
    for memory in (p, 2 * p - 1):
        instance = generate("microbatches", 0, stages=p, micro_batches=n, memory=float(memory), objective="span")
        value = 3 * n + max(0, 2 * p - 1 - min(n, memory))
        assert exact_order_bound(instance) == value
        name = "zb-h1" if memory == p else "zb-h2"
        found = method(name, "deployment").solve(instance, Limits())
        assert found.objective == value


@pytest.mark.parametrize("seed", seeds(13, 300))
def test_bounds_hold_for_all_orders(seed):
    instance = drawn(seed)
    best = best_of_all(instance)
    assert best is not None
    assert exact_order_bound(instance) <= best
    assert bound(instance) <= best


@pytest.mark.parametrize("seed", seeds(3, 40))
def test_micro_batches_may_come_in_one_order(seed):
    """No order is better than the best in which micro-batches have the passes of all kinds in one order."""
    instance = drawn(seed, chunks=2)
    assert best_of_all(instance, alike=False) == best_of_all(instance)


@pytest.mark.parametrize("seed", seeds(6, 60))
def test_floats_and_fractions_agree(seed):
    instance = drawn(seed)
    for number, order in enumerate(orders(instance)):
        if number > 40:
            break
        one, other = evaluate(instance, order), evaluate(instance, order, exact=True)
        assert one.feasible == other.feasible
        if other.objective is not None:
            assert one.objective == pytest.approx(float(other.objective), rel=1e-12)


def test_less_than_one_micro_batch_is_infeasible():
    instance = pipeline(stages=2, chunks=2).changed(memory_bytes=(2.0, 1.5))
    with pytest.raises(InfeasibleError) as error:
        bound(instance)
    one_line(error, "memory_bytes[1] is 1.5, less than the 2 bytes that one micro-batch takes")
    assert bound(instance.changed(memory_bytes=(2.0, 2.0))) > 0


def there_and_back(n, **changes):
    """Three chunks of one chain, the first and the last on one device, of unit times."""
    chunk = {"forward_s": 1, "backward_s": 1, "held_bytes": 1, "freed_bytes": 1}
    chunks = [{"name": f"c{place}", "device": place % 2} | chunk for place in range(3)]
    edges = [{"maker": 0, "user": 1}, {"maker": 1, "user": 2}]
    data = {"name": "back", "chunks": chunks, "edges": edges, "memory_bytes": [2, 2], "micro_batches": n}
    return MicroBatchInstance.from_data(data | {"objective": "span"} | changes)


def test_bounds_of_two_chunks_on_a_device_by_hand():
    """One micro-batch takes six passes; of four, two F fill the memory of the first device, which waits for a third."""
    assert exact_order_bound(there_and_back(1)) == 6
    assert exact_order_bound(there_and_back(4)) == 4 * 4 + 1
    assert exact_order_bound(there_and_back(4, memory_bytes=[3, 2])) == 4 * 4


def test_weights_give_back_what_inputs_have_left():
    chunk = {"name": "c", "device": 0, "forward_s": 1, "backward_s": 1, "weights_s": 1}
    data = {"name": "one", "chunks": [chunk | {"held_bytes": 2, "freed_bytes": 0.5}], "memory_bytes": [8]}
    instance = MicroBatchInstance.from_data(data | {"edges": [], "micro_batches": 3, "objective": "span"})
    for exact in (False, True):
        found = evaluate_order(instance, order_of("0F0 0I0 0W0 0F1 0F2 0I1 0I2 0W1 0W2"), exact)
        assert found.details["largest_memory_bytes"] == 4
        found = evaluate_order(instance, order_of("0F0 0I0 0F1 0F2 0W0 0I1 0I2 0W1 0W2"), exact)
        assert found.details["largest_memory_bytes"] == 5.5


def test_passes_that_take_no_time_take_no_room_from_others_in_the_ramp():
    chunks = [
        {"name": "slow", "device": 0, "forward_s": 10, "backward_s": 100, "held_bytes": 100},
        {"name": "instant", "device": 0, "forward_s": 0, "backward_s": 0, "held_bytes": 1},
        {"name": "far", "device": 1, "forward_s": 0, "backward_s": 0},
    ]
    edges = [{"maker": 0, "user": 1}, {"maker": 1, "user": 2, "forward_s": 20, "backward_s": 20}]
    data = {"name": "x", "chunks": chunks, "edges": edges, "memory_bytes": [201, 0], "micro_batches": 2}
    instance = MicroBatchInstance.from_data(data)
    # Both slow F run before the first B, though there is no room for the second instant one then.
    order = order_of("0F0 1F0 0F1 1B0 1F1 0B0 1B1 0B1", "2F0 2B0 2F1 2B1")
    assert evaluate(instance, order).objective == 250
    assert exact_order_bound(instance) <= 250
