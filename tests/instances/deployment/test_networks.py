"""Training steps put into groups for deployment, and the devices they run on."""

import itertools

import numpy as np
import pytest
from volume import for_each

from ddlopt.instances.generators.deployment import generate
from ddlopt.instances.workloads.accelerators import ACCELERATORS
from ddlopt.instances.workloads.device_groups import devices, random_devices, tag_testbed
from ddlopt.instances.workloads.networks.inception import inception_v3
from ddlopt.instances.workloads.networks.network_graphs import training_step
from ddlopt.instances.workloads.networks.training_graph import operator_time_s
from ddlopt.instances.workloads.operator_groups import consecutive_groups, cut_groups, layers_of, merged, passed_between

MODELS = ("vgg19", "resnet101", "inception-v3", "transformer-base", "bert-small")


def network(**options):
    return generate("network", **options)


def test_inception_has_the_parameters_of_its_published_profile():
    # PipeDream's profile has 27 161 264, of which 3 326 696 are the auxiliary classifier's.
    workload = inception_v3(1)
    assert workload.parameters == 27_161_264 - 3_326_696
    assert workload.flops / 2 == pytest.approx(5.7e9, rel=0.02)  # multiplications and additions, as published


@for_each("model", MODELS)
def test_nothing_is_lost_by_putting_operators_together(model):
    step = training_step(model)
    instance = network(model=model, groups=12, batch=64)
    assert sum(each.gradient_bytes for each in instance.operators) == sum(each.gradient_bytes for each in step)
    for kind in ("v100", "1080ti", "p100"):
        whole = sum(operator_time_s(step, place, ACCELERATORS[kind], 64) for place in range(len(step)))
        assert sum(each.times_s[kind][0] for each in instance.operators) == pytest.approx(whole, rel=1e-3)
    assert instance.groups == 12


@pytest.mark.parametrize("apart", [False, True])
@pytest.mark.parametrize("model", MODELS)
def test_parts_are_acyclic_and_of_one_group(model, apart):
    step = training_step(model)
    group_of = layers_of(step) // 5
    parts = merged(step, group_of.tolist(), apart)
    assert sorted(place for part in parts for place in part.places) == list(range(len(step)))
    number = {place: k for k, part in enumerate(parts) for place in part.places}
    for place, each in enumerate(step):
        assert group_of[place] == parts[number[place]].group
        assert all(number[read] <= number[place] for read in each.reads)
    if apart:
        read = {number[read] for place, each in enumerate(step) for read in each.reads if number[read] != number[place]}
        gradients = {number[place] for place, each in enumerate(step) if each.gradient}
        assert not read & gradients or model == "transformer-base"  # there a shared weight's gradient is a sum


def test_layers_that_share_a_weight_are_one():
    step = training_step("transformer-base")
    layer = dict(zip((each.name.partition("/")[0] for each in step), layers_of(step), strict=True))
    assert layer["embedding.source"] == layer["embedding.target"] == layer["words"]
    assert layer["encoder.0.feed.0"] != layer["words"]


@for_each("seed", range(10))
def test_groups_cut_least_among_all_runs(seed):
    rng = np.random.default_rng(seed)
    work, cut, groups = rng.exponential(size=8), rng.exponential(size=7), 3
    found = consecutive_groups(work, cut, groups, slack=1.5)
    assert sorted(set(found)) == [0, 1, 2]
    assert (np.diff(found) >= 0).all()

    def fits(ends):
        runs = [work[a:b] for a, b in itertools.pairwise((0, *ends, 8))]
        return all(len(run) == 1 or run.sum() <= 1.5 * work.sum() / groups for run in runs)

    costs = [sum(cut[end - 1] for end in ends) for ends in itertools.combinations(range(1, 8), 2) if fits(ends)]
    if costs:
        assert cut[np.flatnonzero(np.diff(found))].sum() == pytest.approx(min(costs))


def test_metis_cuts_less_than_groups_at_random():
    step = training_step("transformer-base")
    layer = layers_of(step)
    times = [operator_time_s(step, place, ACCELERATORS["v100"], 32) for place in range(len(step))]
    found = cut_groups(step, layer, times, 32, 10)
    count = len(set(found))
    assert 2 <= count <= 10
    assert list(dict.fromkeys(found)) == list(range(count))

    def passed(group_of):
        ends = ((read, place) for place, each in enumerate(step) for read in each.reads)
        return sum(step[a].output_bytes(32) for a, b in ends if group_of[layer[a]] != group_of[layer[b]])

    rng = np.random.default_rng(0)
    assert passed(found) < 0.7 * min(passed(rng.permutation(found)) for _ in range(20))
    instance = network(model="transformer-base", groups=10, grouping="metis")
    assert instance.groups <= 10
    assert [each.group for each in instance.operators] != [
        each.group for each in network(model="transformer-base", groups=10).operators
    ]


def test_more_groups_than_layers_are_as_many_as_layers():
    assert consecutive_groups([1.0, 2.0], [1.0], 5).tolist() == [0, 1]


def test_bytes_between_layers_of_a_chain():
    step = training_step("vgg16")
    passed = passed_between(step, layers_of(step), 2)
    # Of each sample the last layer reads 4096 numbers, twice (forward and for the weight's gradient, one tensor), and
    # sends back an error of as many; the labels go from a layer of their own to the loss.
    names = list(dict.fromkeys(each.name.partition("/")[0] for each in step))
    place = names.index("dense.2")
    assert passed[place - 1] == 2 * 4 * (4096 + 4096)


def test_testbed_is_the_published_one():
    cluster = tag_testbed()
    assert [(group["type"], group["count"]) for group in cluster.groups] == [("v100", 4), ("1080ti", 8), ("p100", 4)]
    assert cluster.bandwidth_bytes_per_s[0, 2] == 2.81e9
    instance = network(model="vgg19", groups=4)
    assert instance.devices == 16
    assert instance.device_group_of.tolist() == [0] * 4 + [1] * 8 + [2] * 4


def test_drawn_devices_keep_the_rules():
    seen = set()
    for seed in range(200):
        cluster = random_devices(np.random.default_rng(seed))
        counts = [group["count"] for group in cluster.groups]
        assert 1 <= len(counts) <= 4
        assert set(counts) <= {2, 3, 4, 6, 8}
        assert sum(counts[:-1]) < 16
        assert (cluster.bandwidth_bytes_per_s == cluster.bandwidth_bytes_per_s.T).all()
        seen |= set(cluster.types)
    assert seen == {"v100", "1080ti", "p100"}
    with pytest.raises(Exception, match="there are no devices 'moon'"):
        devices("moon", np.random.default_rng(0))


@for_each("seed", range(5))
def test_random_steps_are_forward_then_back(seed):
    instance = generate("random", seed, groups=5, skips=2)
    assert instance.groups == 5
    assert len(instance.operators) == 10
    assert all(members[0] < 5 <= members[1] for members in instance.members)
    assert all(tensor.producer < node for tensor in instance.tensors for node in tensor.consumers)
