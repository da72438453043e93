"""Lower bounds without a solver: averages over the servers, and what does not fit in memory."""

import itertools
import json

import numpy as np
import pytest
from codesign_cases import drawn_with_features
from volume import for_each, seeds

from ddlopt.models.codesign import CodesignInstance, CodesignPlan, evaluate
from ddlopt.models.codesign.bounds import fits, lower_bound, refuse_too_large
from ddlopt.models.codesign.demand import demand_of
from ddlopt.models.codesign.tables import tables_of
from ddlopt.models.errors import InfeasibleError
from ddlopt.models.topology import TopologyDesign


def own_times(instance):
    """Seconds that every choice of strategies takes at least, whatever the links are."""
    tables = tables_of(instance)
    for choices in itertools.product(*map(range, tables.sizes)):
        z = demand_of(tables).least_bytes(np.concatenate(tables.bytes_of(choices)))
        yield instance.iteration_time_s(tables.compute_of(choices), z)


@for_each("seed", seeds(3, 30))
def test_no_choice_takes_less(seed):
    instance = drawn_with_features(seed)
    assert 0 < lower_bound(instance) <= min(own_times(instance)) * (1 + 1e-9)


def two_layers(alone_s, overlap="none", bandwidth=1.0, edges=((0, 1),)):
    """Two servers; two layers of 4 s on both, with 8 bytes to reduce, the second also of ``alone_s`` on the first."""
    both = {"name": "both", "reads": 0, "writes": 0, "measured_s": 4.0, "reductions": [{"groups": 0, "bytes": 8.0}]}
    alone = {"name": "alone", "reads": 1, "writes": 1, "measured_s": alone_s}
    data = {
        "name": "two",
        "servers": 2,
        "degree": 1,
        "overlap": overlap,
        "link_bandwidth_bytes_per_s": bandwidth,
        "device": {"flops_per_s": 1.0, "convolution_flops_per_s": 1.0, "memory_bytes_per_s": 1.0},
        "layouts": [{"batch_parts": 2, "servers": [0, 1]}, {"batch_parts": 1, "servers": [0]}],
        "group_sets": [[[0, 1]]],
        "layers": [{"name": "a", "strategies": [both]}, {"name": "b", "strategies": [both, alone]}],
        "edges": edges,
    }
    return CodesignInstance.from_data(data)


@pytest.mark.parametrize(
    ("instance", "seconds"),
    [
        (two_layers(3.0), 4 + 3 + 8),  # the path, and the bytes of the first layer over a link each way
        (two_layers(30.0), 2 * (4 + 8)),  # both layers on both servers
        (two_layers(3.0, "full"), 8),
        (two_layers(3.0, "full", 4), 4 + 3),
        (two_layers(3.0, "full", 4, ()), 4 + 3 / 2),
    ],
)
def test_averages_and_the_path_by_hand(instance, seconds):
    assert lower_bound(instance) == pytest.approx(seconds, rel=1e-6)
    assert lower_bound(instance) < seconds


def test_traffic_counts_by_its_own_hops():
    """Over two links 8 bytes one way and 4 the other take 4 and 2 s; a ring takes twice as long for each byte."""
    data = json.loads(two_layers(3.0).to_json())
    for layer, traffic in zip(data["layers"], ([[0, 1, 8.0]], [[1, 0, 4.0]]), strict=True):
        layer["strategies"] = [layer["strategies"][0] | {"reductions": [], "traffic": traffic}]
    assert lower_bound(CodesignInstance.from_data(data)) == pytest.approx(4 + 4 + 4 + 2, rel=1e-6)


def test_a_layer_waits_for_all_that_it_reads():
    """1 s and 5 s on servers of their own, then 2 s on the first."""
    data = json.loads(two_layers(3.0).to_json())
    alone = {"batch_parts": 1, "servers": [0]}, {"batch_parts": 1, "servers": [1]}
    layers = [
        {"name": name, "strategies": [{"name": "only", "writes": place, "measured_s": time} | reads]}
        for name, place, time, reads in (("a", 0, 1.0, {}), ("b", 1, 5.0, {}), ("c", 0, 2.0, {"reads": 0}))
    ]
    given = data | {"layouts": list(alone), "group_sets": [], "layers": layers, "edges": [[0, 2], [1, 2]]}
    instance = CodesignInstance.from_data(given)
    links = TopologyDesign(instance="two", links=((0, 1, 1), (1, 0, 1)))
    plan = CodesignPlan(instance="two", strategies=("only",) * 3, design=links)
    found = evaluate(instance, plan)
    assert (found.violations, found.objective) == ((), 7)
    assert fits(instance)
    small = instance.device.model_copy(update={"memory_bytes": 1.0})
    strategies = [[each | {"memory_bytes": 2.0} for each in layer["strategies"]] for layer in layers]
    heavy = [layer | {"strategies": own} for layer, own in zip(layers, strategies, strict=True)]
    assert not fits(CodesignInstance.from_data(given | {"layers": heavy, "device": small.model_dump()}))


def test_nothing_to_do_takes_no_time():
    strategy = {"name": "data", "writes": 0}
    data = {
        "name": "idle",
        "servers": 2,
        "degree": 1,
        "link_bandwidth_bytes_per_s": 1.0,
        "device": {"flops_per_s": 1.0, "convolution_flops_per_s": 1.0, "memory_bytes_per_s": 1.0},
        "layouts": [{"batch_parts": 2, "servers": [0, 1]}],
        "layers": [{"name": "a", "strategies": [strategy]}],
    }
    assert lower_bound(CodesignInstance.from_data(data)) == 0


def test_a_layer_that_fits_nowhere_and_layers_that_do_not_fit_together():
    instance = drawn_with_features(4)
    data = json.loads(instance.to_json())
    for place, layer in enumerate(data["layers"]):
        for strategy in layer["strategies"]:
            strategy["memory_bytes"] = 10.0 * (place + 1)
            strategy["writes"] = 0
    data["device"]["memory_bytes"] = 30.0
    layers = len(data["layers"])
    with pytest.raises(InfeasibleError, match=r"no strategy of layer 'layer\.3' fits .* 10 bytes are missing"):
        lower_bound(CodesignInstance.from_data(data))
    data["device"]["memory_bytes"] = total = sum(10.0 * (place + 1) for place in range(layers))
    refuse_too_large(CodesignInstance.from_data(data))
    data["device"]["memory_bytes"] = total - 1
    with pytest.raises(InfeasibleError, match=r"do not fit in memory together.* 4 bytes are missing"):
        lower_bound(CodesignInstance.from_data(data))


@pytest.mark.parametrize("unit", [2.0**-60, 2.0**60])
def test_bytes_of_traffic_may_be_in_any_unit(unit):
    """Patterns of a few attobytes, which round to the same, are not taken for one another."""

    def layer(name, amount):
        strategy = {"name": "s", "writes": 0, "measured_s": 0.0, "traffic": [[0, 1, amount], [0, 2, amount]]}
        return {"name": name, "strategies": [strategy]}

    def in_units(unit):
        data = {
            "name": "traffic",
            "servers": 4,
            "degree": 1,
            "link_bandwidth_bytes_per_s": unit,
            "device": {"flops_per_s": 1, "convolution_flops_per_s": 1, "memory_bytes_per_s": 1},
            "layouts": [{"batch_parts": 4, "servers": [0, 1, 2, 3]}],
            "layers": [layer("large", 3.0 * unit), layer("small", unit)],
        }
        return CodesignInstance.model_validate(data)

    assert lower_bound(in_units(unit)) == lower_bound(in_units(1.0)) > 2.9
