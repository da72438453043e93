"""States of a few devices: bounds against all orders, and proven values."""

from itertools import permutations

import pytest
from microbatch_cases import best_of_all, drawn
from volume import seeds

import ddlopt
from ddlopt.frontier.deployment.microbatches import few_devices
from ddlopt.frontier.deployment.microbatches.few_devices import few_devices_bound
from ddlopt.instances.generators.deployment import generate
from ddlopt.models.deployment import bound
from ddlopt.models.deployment.microbatches.ticks import exact_ticks
from ddlopt.solvers.catalogue import method
from ddlopt.solvers.contracts import Limits, Status

MANY = 10**6


def unit(p, n, memory, objective="span"):
    return generate("microbatches", 0, stages=p, micro_batches=n, memory=memory, objective=objective)


def groups(instance):
    """Devices by which the least may be bounded: each one, and several of one chain behind that of its first chunk."""
    yield from ((device,) for device in range(instance.devices))
    if len(instance.chains) == 1 or instance.objective != "span":
        first = instance.chunks[instance.chains[0][0]].device
        yield from (each for each in permutations(range(instance.devices)) if each[0] == first and len(each) > 1)


@pytest.mark.parametrize("labels", [1, 40])
@pytest.mark.parametrize("seed", seeds(6, 400))
def test_bounds_hold_for_all_orders(seed, labels, monkeypatch):
    """Also where labels are merged; and a makespan of all devices is the least of all orders."""
    monkeypatch.setattr(few_devices, "_LABELS", labels)
    instance = drawn(seed)
    ticks, best = exact_ticks(instance), best_of_all(instance)
    for group in groups(instance):
        low = few_devices_bound(ticks, group, MANY)
        assert ticks.seconds(low) <= best, group
        if labels > 1 and instance.objective != "span" and len(group) == instance.devices:
            assert ticks.seconds(low) == best
        # Nothing is lost by asking for less than what is known, and what is asked too low is all that is said.
        for high in (low - 1, low, low + 1, low + 2):
            assert few_devices_bound(ticks, group, MANY, high) == min(high, low) or labels == 1


@pytest.mark.parametrize(
    ("memory", "alone", "least"), [(2.0, 39, 41), (2.5, 36, 37), (3.0, 30, 31), (3.5, 29, 29), (4.0, 27, 27)]
)
def test_memory_below_the_devices(memory, alone, least):
    """Unit times, four devices, eight micro-batches: spans known from integer programs."""
    instance = unit(4, 8, memory)
    ticks = exact_ticks(instance)
    assert few_devices_bound(ticks, (0,), MANY) == alone
    assert few_devices_bound(ticks, (0, 1, 2), MANY) == least
    found = method("order-states", "deployment").solve(instance, Limits())
    assert found.checked
    assert found.bound == pytest.approx(least, rel=1e-9)


def test_a_value_by_hand():
    """Two devices, two micro-batches, memory for one: each goes there and back, F F B B W W and again.

    B of the second device begins at 2, of the first at 3; its W makes room at 5 for the other F: 2 (3 + 2) - 0 = 10.
    """
    instance = unit(2, 2, 1.0)
    assert few_devices_bound(exact_ticks(instance), (0,), MANY) == 10
    assert few_devices_bound(exact_ticks(instance), (1,), MANY) == 6


def test_spans_are_of_the_first_device_and_makespans_of_all():
    """Three devices, four micro-batches, memory for five: 13 and 14; the last one works 12 from 2 on."""
    span, makespan = (exact_ticks(unit(3, 4, 5.0, objective)) for objective in ("span", "makespan"))
    assert few_devices_bound(span, (0, 1, 2), MANY) == 13
    assert few_devices_bound(makespan, (0, 1, 2), MANY) == 14
    assert few_devices_bound(makespan, (2,), MANY) == 14
    assert few_devices_bound(span, (2,), MANY) == 12


def test_too_many_labels_or_no_time_is_no_bound():
    ticks = exact_ticks(unit(4, 8, 3.0))
    assert few_devices_bound(ticks, (0,), 10) is None
    assert few_devices_bound(ticks, (0,), MANY, expired=lambda: True) is None


def test_exact_asks_states_first():
    """Memory for three micro-batches at five devices, which the bound without states is 3 below."""
    instance = unit(5, 8, 3.0)
    assert bound(instance) == pytest.approx(37 - 3)
    found = ddlopt.solve(instance, time_limit=60)
    assert found.status is Status.OPTIMAL
    assert found.objective == 37
    assert found.details["programs"] > 1
    again = method("order-states", "deployment").solve(instance, Limits(), start=found.solution)
    assert again.objective == found.objective


@pytest.mark.slow
@pytest.mark.parametrize(("memory", "value"), [(5.0, 97), (6.0, 85), (8.0, 79)])
@pytest.mark.parametrize("objective", ["span", "makespan"])
def test_eight_devices(memory, value, objective):
    found = ddlopt.solve(unit(8, 24, memory, objective), time_limit=120)
    assert found.status is Status.OPTIMAL
    assert found.objective == value
