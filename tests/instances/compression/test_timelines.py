"""Errors and costs of compressors by hand and against NumPy's, generated timelines, and those that are bundled."""

import functools

import numpy as np
import pytest
from refusals import one_line
from volume import for_each, slow

from ddlopt.instances import best
from ddlopt.instances.generators import generate
from ddlopt.instances.library.compression.timeline import instances
from ddlopt.instances.workloads.accelerators import V100
from ddlopt.instances.workloads.compression.compressors import Compression
from ddlopt.instances.workloads.compression.costs import menu
from ddlopt.instances.workloads.compression.numpy_compressors import Setting, squared_error
from ddlopt.models.compression import Cluster, evaluate
from ddlopt.models.errors import InstanceError, OptionError
from ddlopt.solvers.compression.timeline.espresso import Espresso
from ddlopt.solvers.compression.timeline.lane_search import LaneSearch
from ddlopt.solvers.compression.timeline.secopa import Secopa
from ddlopt.solvers.contracts import Limits

# Errors ---------------------------------------------------------------------------------------------------------------


@for_each(
    ("words", "setting"),
    [
        ("top_k:0.01", Setting("top_k", ratio=0.01)),
        ("top_k:0.3", Setting("top_k", ratio=0.3)),
        ("dgc:0.1", Setting("dgc", ratio=0.1)),
        ("random_k:0.1", Setting("random_k", ratio=0.1)),
        ("qsgd:1", Setting("qsgd", levels=1)),
        ("qsgd:7", Setting("qsgd", levels=7)),
        ("qsgd:127", Setting("qsgd", levels=127)),
        ("sign", Setting("sign")),
        ("onebit", Setting("onebit")),
    ],
)
def test_errors_of_normal_entries(words, setting):
    rng = np.random.default_rng(1)
    entries = rng.standard_normal((1, 2**17))
    measured = squared_error(setting, entries, rng) / (entries**2).sum()
    assert Compression.from_words(words).relative_error(entries.shape[1:]) == pytest.approx(measured, rel=0.03)


def test_error_of_half_precision():
    significands = 2.0 ** np.random.default_rng(2).uniform(0, 8, 10**6)
    lost = ((significands - significands.astype(np.float16)) ** 2 / 4.0 ** np.floor(np.log2(significands))).mean()
    kept = (significands**2 / 4.0 ** np.floor(np.log2(significands))).mean()
    assert Compression("fp16").relative_error((10,)) == pytest.approx(lost / kept, rel=0.01)


def test_error_of_low_rank():
    rng = np.random.default_rng(3)
    left, right = (np.linalg.qr(rng.standard_normal((size, 40)))[0] for size in (60, 40))
    values = np.arange(1, 41) ** -0.75
    whole = (left * values) @ right.T
    best_left, best_values, best_right = np.linalg.svd(whole, full_matrices=False)
    best_values[3:] = 0
    lost = ((whole - (best_left * best_values) @ best_right) ** 2).sum() / (whole**2).sum()
    assert Compression("powersgd", 3).relative_error((60, 8, 5)) == pytest.approx(lost, rel=1e-9)


def test_compressing_twice():
    rng, once = np.random.default_rng(4), Compression.from_words("qsgd:31")
    assert once.relative_error((1000,), 2) == pytest.approx((1 + once.relative_error((1000,))) ** 2 - 1)
    # Random-k of random-k keeps k² of the energy.
    kept = np.mean([(rng.random(10**4) < 0.3) & (rng.random(10**4) < 0.3) for _ in range(100)])
    assert Compression("random_k", 0.3).relative_error((10**4,), 2) == pytest.approx(1 - kept, abs=2e-3)


@for_each(
    ("words", "expected"),
    [
        ("none", 4_000_000), ("fp16", 2_000_000), ("dgc:0.01", 80_000), ("random_k:0.01", 40_000),
        ("qsgd:7", 500_000 + 4 * 1954), ("qsgd:8", 625_000 + 4 * 1954), ("sign", 125_004), ("onebit", 125_008),
        ("powersgd:2", 8 * 2500), ("sfb", 4 * 32 * 2500),
    ],
)  # fmt: skip
def test_bytes(words, expected):
    assert Compression.from_words(words).payload_bytes((500, 2000), rows=32) == expected


def test_a_sparsifier_sends_at_least_one_number():
    assert Compression("top_k", 0.001).payload_bytes((10,)) == 8
    assert Compression("top_k", 1.0).relative_error((10,)) == pytest.approx(0, abs=1e-9)


# Times ----------------------------------------------------------------------------------------------------------------

CLUSTER = Cluster(
    nodes=2, gpus_per_node=4, intra_bandwidth_bytes_per_s=1e9, inter_bandwidth_bytes_per_s=1e8, latency_s=1e-5
)
SHAPE = (4096, 1024)
"""2^22 numbers: four times, or a GPU's share as large as, what times are given for."""
BYTES = 2**24


def offered(*words, cluster=CLUSTER, shape=SHAPE, rows=None):
    options = menu(shape, cluster, [Compression.from_words(each) for each in words], rows=rows)
    return {option.label: option for option in options}


def test_what_is_added_up_travels_in_rings():
    options = offered("fp16", "random_k:0.01/inter", "random_k:0.01/all")
    assert list(options) == ["none", "fp16", "random_k 1 % inter", "random_k 1 % all"]
    none, half, inter, both = options.values()
    assert none.wire_s == pytest.approx(1.5 * BYTES / 1e9 + 1.0 * BYTES / 1e8, rel=1e-5)
    assert half.wire_s == pytest.approx(none.wire_s / 2, rel=1e-5)
    assert (half.encode_s, half.decode_s) == (16e-6, 88e-6)
    assert inter.wire_s == pytest.approx(1.5 * BYTES / 1e9 + 0.01 * BYTES / 1e8, rel=1e-4)
    assert both.wire_s == pytest.approx(0.01 * none.wire_s, rel=1e-4)
    assert (inter.encode_s, both.encode_s, inter.decode_s, both.decode_s) == (54e-6, 216e-6, 34e-6, 136e-6)
    # Three steps each way within a node, one each way between two.
    assert {option.launch_s for option in options.values()} == {8e-5}
    assert inter.error == both.error == pytest.approx(0.99, rel=1e-4)


def test_other_compressors_are_gathered():
    sent = BYTES / 32
    inter, both, intra = list(offered("sign/inter", "sign/all", "sign/intra").values())[1:]
    assert inter.wire_s == pytest.approx(1.5 * BYTES / 1e9 + sent / 1e8, rel=1e-4)
    assert both.wire_s == pytest.approx(0.75 * sent * (1 + 2) / 1e9 + sent / 1e8, rel=1e-4)
    assert intra.wire_s == pytest.approx(0.75 * sent * 2 / 1e9 + BYTES / 1e8, rel=1e-4)
    assert [round(1e6 * x) for x in (inter.encode_s, both.encode_s, intra.encode_s)] == [130, 520, 520]
    twice = 2 * 560 + 130
    assert [round(1e6 * x) for x in (inter.decode_s, both.decode_s, intra.decode_s)] == [140, twice, twice]
    assert [round(1e6 * x) for x in (inter.launch_s, both.launch_s, intra.launch_s)] == [70, 70, 80]
    once = 1 - 2 / np.pi
    assert [x.error for x in (inter, both, intra)] == pytest.approx([once, *[1 - (1 - once) ** 2] * 2], rel=1e-5)


def test_without_a_scope_there_is_one_of_either():
    assert list(offered("dgc:0.01", "powersgd:1")) == ["none", "dgc 1 % inter", "dgc 1 % all", "powersgd 1"]
    nodes = CLUSTER.model_copy(update={"gpus_per_node": 1})
    assert list(offered("dgc:0.01", "dgc:0.01/inter", cluster=nodes)) == ["none", "dgc 1 %"]
    one = offered("dgc:0.01", "sign", cluster=nodes)
    assert one["sign"].wire_s == pytest.approx(BYTES / 32 / 1e8, rel=1e-4)
    assert (one["sign"].encode_s, one["sign"].decode_s) == (520e-6, 560e-6)
    assert one["sign"].error == pytest.approx(1 - 2 / np.pi, rel=1e-5)


def test_low_rank_and_factors():
    options = offered("powersgd:4", "sfb", rows=320)
    low, factors = options["powersgd 4"], options["sfb"]
    assert low.wire_s == pytest.approx(16 * 5120 * (1.5 / 1e9 + 1 / 1e8), rel=1e-4)
    assert low.launch_s == 2 * 8e-5
    # Each product reads or writes the matrix, which takes longer than its operations.
    product = 4 * (2**22 + 4 * 5120) / V100.memory_bytes_per_s
    orthogonal = 2 * 4096 * 16 / V100.flops_per_s
    assert low.encode_s == pytest.approx(2 * product + orthogonal + 14e-5, rel=1e-4)
    assert low.decode_s == pytest.approx(product + 1e-5, rel=1e-4)
    assert factors.wire_s == pytest.approx(4 * 320 * 5120 * (7 / 1e9 + 4 / 1e8), rel=1e-4)
    assert factors.decode_s == pytest.approx(7 * 2 * 320 * 2**22 / V100.flops_per_s, rel=1e-4)
    assert (factors.encode_s, factors.launch_s, factors.error) == (0, 4e-5, 0)
    # Not where the factors would be no smaller, and SFB only where the factors are known.
    assert list(offered("powersgd:4", "sfb", shape=(5, 5))) == ["none"]
    assert list(offered("powersgd:1", shape=(4096,))) == ["none"]


def test_processors_delay_nothing():
    option = offered("dgc:0.01/cpu")["dgc 1 % inter cpu"]
    assert (option.device, option.scope, option.encode_s) == ("cpu", "inter", 0)
    assert option.decode_s == pytest.approx(13e-6 + 2**27 / 14.4e9 + 2**27 / 70.6e9, rel=1e-4)


# What can be asked for ------------------------------------------------------------------------------------------------


@for_each(
    ("words", "line"),
    [
        ("zip", "compressor is 'zip'; use one of: none, fp16, top_k, dgc"),
        ("dgc:0", "compressor 'dgc:0': the ratio is 0; it must be above 0 and at most 1"),
        ("dgc:1.5", "compressor 'dgc:1.5': the ratio is 1.5; it must be above 0 and at most 1"),
        ("dgc", "compressor 'dgc': dgc needs its ratio"),
        ("top_k:nan", "the ratio is nan"),
        ("qsgd:2.5", "compressor 'qsgd:2.5': levels must be a whole number of at least 1, not 2.5"),
        ("powersgd:0", "compressor 'powersgd:0': rank must be a whole number of at least 1, not 0"),
        ("powersgd:inf", "rank must be a whole number of at least 1, not inf"),
        ("sign:3", "compressor 'sign:3': sign takes no parameter"),
        ("sign/outer", "compressor 'sign/outer' ends in '/outer'; use /all, /inter, /intra or /cpu"),
        ("sign/all/inter", "ends in '/all/inter'"),
        ("powersgd:4/inter", "compressor 'powersgd:4/inter' works everywhere; leave out '/inter'"),
        ("qsgd:7/cpu", "compressor 'qsgd:7/cpu': on CPUs there are random_k, dgc, sign, onebit, all between nodes"),
        ("sign/all/cpu", "on CPUs there are"),
    ],
)
def test_odd_words(words, line):
    with pytest.raises(OptionError, match=line):
        Compression.from_words(words)


def test_goals_need_their_budgets():
    with pytest.raises(InstanceError, match="goal is 'error', but time_budget_s is missing"):
        generate("compression", "network", goal="error")


def test_generated():
    instance = generate("compression", "network", model="resnet50", error_budget_part=0.5, name="mine")
    assert (instance.name, instance.error_budget) == ("mine", 0.5)
    assert sum(gradient.elements for gradient in instance.gradients) == 25_557_032
    assert len(instance.menus) < 30 < len(instance.gradients)
    assert {gradient.menu for gradient in instance.gradients} == set(range(len(instance.menus)))
    assert instance.cluster.inter_bandwidth_bytes_per_s == 25e9 / 8
    whole = [next(o.error for o in instance.menus[g.menu] if o.label == "sign inter") for g in instance.gradients]
    assert sum(whole) == pytest.approx(1 - 2 / np.pi, rel=1e-4)
    # Classes x 2048 numbers of an image each.
    dense = next(gradient for gradient in instance.gradients if gradient.shape == (1000, 2048))
    factors = next(option for option in instance.menus[dense.menu] if option.label == "sfb")
    assert factors.wire_s == pytest.approx(4 * 32 * 3048 * (63 / 150e9 + 56 / 3.125e9), rel=1e-4)


@for_each(
    ("options", "name", "labels"),
    [
        ({}, "vgg16-n8x8-nvlink-25g", 10),
        ({"nodes": 16, "gpus_per_node": 1, "network_gigabit_per_s": 10}, "vgg16-n16-10g", 8),
        ({"cost_model": "espresso", "intra": "pcie"}, "espresso-vgg16-n8x8-pcie", 4),
        ({"cost_model": "espresso", "compressors": ["sign/inter"]}, "espresso-vgg16-n8x8-nvlink", 3),
        ({"cost_model": "espresso", "compressors": ["onebit/cpu"]}, "espresso-vgg16-n8x8-nvlink", 5),
        ({"cost_model": "hipress-ring", "nodes": 4, "gpus_per_node": 1}, "hipress-ring-vgg16-n4", 8),
    ],
)
def test_names_and_menus(options, name, labels):
    instance = generate("compression", "network", **options)
    assert instance.name == name
    assert min(len(menu) for menu in instance.menus) == labels


# The library ----------------------------------------------------------------------------------------------------------


@functools.cache
def bundled():
    return {instance.name: instance for instance in instances() if not instance.name.startswith("measured")}


def limited():
    return [made for made in bundled().values() if made.error_budget is not None]


def test_what_the_library_must_hold():
    everything = bundled().values()
    assert len(everything) >= 30
    assert 12 <= len(limited()) <= len(everything) - 12
    assert sum(made.fusion for made in everything) >= 4
    assert sum(made.goal == "error" for made in everything) == 2
    clusters = [made.cluster for made in everything]
    assert {2, 16, 64} <= {cluster.workers for cluster in clusters}
    assert {10, 25, 100} <= {round(cluster.inter_bandwidth_bytes_per_s * 8e-9) for cluster in clusters}
    assert {cluster.intra for cluster in clusters} == {"nvlink", "pcie"}
    assert max(made.size for made in everything) == 391


@pytest.mark.parametrize("step", [4, slow(1)])
def test_budgets_bind(step):
    """Some plan that breaks the budget takes less time than the best known one that keeps it."""
    for instance in limited()[::step]:
        kept = evaluate(instance, best(f"compression/{instance.name}")).objective
        data = instance.model_dump() | {"error_budget": None, "fusion": False, "largest_bucket_bytes": None}
        free = type(instance).from_data(data)
        others = (LaneSearch(rounds=0),) if free.lanes else (Espresso(thresholds=False), Secopa())
        quickest = min(method.solve(free, Limits()).objective for method in others)
        assert quickest < kept, instance.name


@pytest.mark.parametrize(
    "name", ["espresso-resnet101-dgc-pcie", "espresso-bert-base-dgc-pcie", "espresso-gpt2-sign-pcie"]
)
def test_where_published_sizes_lose_tens_of_percent(name):
    greedy = Espresso().solve(bundled()[name], Limits()).objective
    assert greedy > 1.3 * evaluate(bundled()[name], best(f"compression/{name}")).objective


def test_lanes_are_those_that_options_pass():
    lanes = {"model": "vgg16", "compressors": ("dgc:0.01/inter",), "lanes": True}
    assert generate("compression", "network", **lanes).lanes == ("within", "between", "decoding")
    assert generate("compression", "network", **lanes | {"gpus_per_node": 1, "compressors": ("dgc:0.01",)}).lanes == (
        "between",
        "decoding",
    )


def test_lanes_are_busy_for_as_long_as_the_wire_was():
    """Every option's stages add up to what it takes of the wire where there is one."""
    asked = {"model": "resnet50", "intra": "pcie", "compressors": ("fp16", "powersgd:4", "sign", "sign/cpu", "sfb")}
    wire, lanes = generate("compression", "network", **asked), generate("compression", "network", **asked, lanes=True)
    assert lanes.lanes == ("within", "cpu", "between", "decoding")
    for one, other in zip(wire.menus, lanes.menus, strict=True):
        for option, staged in zip(one, other, strict=True):
            assert (option.label, option.encode_s, option.error) == (staged.label, staged.encode_s, staged.error)
            assert staged.occupation_s == pytest.approx(option.occupation_s, rel=1e-5)


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"cost_model": "hipress", "nodes": 8, "gpus_per_node": 1, "lanes": True}, "has one wire; leave out lanes"),
        ({"cost_model": "espresso", "lanes": True}, "dgc is not compressed on CPUs"),
    ],
)
def test_lanes_that_are_not_there_are_refused(options, says):
    with one_line(OptionError, says):
        generate("compression", "network", **options)
