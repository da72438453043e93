"""Lower bounds without a solver: averages over the servers, and what does not fit in memory."""

import itertools
import json

import numpy as np
import pytest
from codesign_cases import drawn_with_features
from volume import for_each, seeds

from ddlopt.models.codesign import CodesignInstance
from ddlopt.models.codesign.bounds import lower_bound, refuse_too_large
from ddlopt.models.codesign.demand import demand_of
from ddlopt.models.codesign.tables import tables_of
from ddlopt.models.errors import InfeasibleError


def own_times(instance):
    """Seconds that every choice of strategies takes at least, whatever the links are."""
    tables = tables_of(instance)
    for choices in itertools.product(*map(range, tables.sizes)):
        z = demand_of(tables).least_bytes(np.concatenate(tables.bytes_of(choices)))
        yield instance.iteration_time_s(tables.compute_of(choices), z)


@for_each("seed", seeds(6, 30))
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
