"""Generators told what they do not take: one line that names the option, its value and what is taken."""

import math

import numpy as np
import pytest
from refusals import one_line
from volume import for_each

from ddlopt.instances.generators import generate
from ddlopt.instances.generators.compression.random import MOST_OPTIONS
from ddlopt.models.errors import InstanceError, OptionError

REFUSED = {
    "aggregation fat-tree": [
        ({"k": 5}, "k is 5; it must be even"),
        ({"workers": 16}, "workers is 16; with the server that is more than the 16 hosts"),
        ({"oversubscription": 0.0}, "oversubscription is 0.0"),
    ],
    "aggregation leaf-spine": [
        ({"spines": 0}, "spines is 0"),
        ({"placement": "near"}, "placement is 'near'; use one of: random, clustered"),
        ({"goal": "time"}, "goal is 'time'"),
    ],
    "aggregation torus": [
        ({"sides": [1]}, r"sides are \(1,\)"),
        ({"slots": -1}, "slots is -1"),
        ({"gradient_bytes": 0.0}, "gradient_bytes is 0.0"),
    ],
    "aggregation graph-random": [
        ({"switches": 5, "degree": 3}, "even product"),
        ({"switches": 4, "degree": 4}, "below the number of switches"),
    ],
    "aggregation hot-zipf": [
        ({"parameters": 5}, "parameters is 5, but each of 17 fields has a value"),
        ({"jobs": 0}, "jobs is 0"),
        ({"widths": (0,)}, r"widths is \[0\]"),
        ({"memory": 0.0}, "memory"),
        ({"switches": 1.5}, "switches is 1.5; it must be a whole number"),
    ],
    "aggregation registers-zipf": [
        ({"parameters": 20_000}, "parameters is 20000, but the batches touch"),
        ({"capacity": 0.5}, "capacity is 0.5"),
        ({"goal": "speed"}, "goal is 'speed'"),
        ({"rows": 0}, "rows is 0"),
        ({"held_out": -1}, "held_out is -1"),
        ({"vocabulary": 5}, "parameters is 5, but each of 17 fields has a value"),
    ],
    "aggregation slots": [
        ({"jobs": 0}, "jobs"),
        ({"memory": 0.0}, "memory"),
        ({"hardware": "abacus"}, "hardware"),
        ({"goal": "least"}, "goal"),
        ({"spread": -1.0}, "spread"),
        ({"loss": 1.5}, "loss is 1.5; it must be within 0..1"),
        ({"slow_chance": -0.1}, "slow_chance is -0.1; it must be within 0..1"),
        ({"timeout_us": 0.0}, "timeout_us is 0.0; it must be positive"),
        ({"slow_us": 0.0}, "slow_us is 0.0; it must be positive"),
        ({"slow_us": 10.0}, "slow_us is given without slow_chance"),
        ({"timeout_us": 10.0, "slow_chance": 0.1}, "timeout_us is given without loss"),
        ({"bucket_mb": 0.0}, "bucket_mb is 0.0; it must be positive"),
        ({"at_once": 0.0}, "at_once is 0.0; it must be positive"),
    ],
    "aggregation table": [
        ({"shape": "floats"}, "shape is 'floats'; use one of: integers, mantissas, random"),
        ({"entries": "exact"}, "entries is 'exact'; use one of: ranges, prefixes"),
        ({"goal": "mean"}, "goal is 'mean'; use one of: sum, max"),
        ({"bits": 0}, "bits is 0; it must be at least 1"),
        ({"bits": 21}, "bits is 21; it must be at most 20"),
        ({"fraction_bits": -1}, "fraction_bits is -1; it must be at least 0"),
        ({"entry_bytes": 0}, "entry_bytes is 0; it must be at least 1"),
        ({"shape": "random", "tables": 0}, "tables is 0; it must be at least 1"),
        ({"bits": 2.5}, "bits is 2.5; it must be a whole number"),
    ],
    "aggregation tree-random": [
        ({"nodes": 0}, "nodes is 0"),
        ({"nodes": 10**7}, "at most"),
        ({"depth": 2.0}, "depth is 2.0"),
        ({"loads": "zipf"}, "loads is 'zipf'"),
        ({"rates": "square"}, "rates is 'square'"),
        ({"goal": "rates"}, "goal is 'rates'"),
        ({"jobs": 0}, "jobs is 0"),
        ({"budget": -1}, "budget is -1"),
        ({"nodes": 300, "depth": 1.0, "rates": "exponential"}, "the tree has 299 levels"),
    ],
    "aggregation tree-complete": [({"levels": 40}, "levels 40 give"), ({"arity": 0}, "arity is 0")],
    "codesign job": [
        ({"job": "gpt5"}, "job is 'gpt5'; use one of: dlrm, bert"),
        ({"servers": 1}, "servers is 1; it must be at least 2"),
        ({"degree": 12}, "degree is 12, but 12 servers have at most 11 neighbours"),
        ({"groups": [5]}, r"groups contains 5; use divisors of 12 in 2\.\.12"),
        ({"groups": [1]}, r"groups contains 1; use divisors of 12 in 2\.\.12"),
        ({"subsets": [12]}, r"subsets contains 12; use divisors of 12 in 1\.\.11"),
        ({"gigabit_per_s": 0.0}, "gigabit_per_s is 0.0; it must be positive"),
        ({"gpus_per_server": 0}, "gpus_per_server is 0; it must be at least 1"),
        ({"batch_per_gpu": 0}, "batch_per_gpu is 0; it must be at least 1"),
        ({"memory_gigabytes": -1.0}, "memory_gigabytes is -1.0; it must be positive"),
        ({"state_bytes_per_parameter": 2.0}, "state_bytes_per_parameter is 2.0; it must be at least 4"),
        ({"owners": "some"}, "owners is 'some'; use one of: round_robin, all"),
        ({"accelerator": "h99"}, "accelerator is 'h99'; use one of: v100, a100"),
        ({"optics": "fibre"}, "optics: .*'one_way' or 'duplex'"),
        ({"measures": "nowhere.json"}, "nowhere.json: cannot be read: No such file"),
        ({"colour": 1}, "kind 'job' takes no option 'colour'"),
    ],
    "codesign random": [
        ({"servers": 1}, "servers is 1; it must be at least 2"),
        ({"layers": 0}, "layers is 0; it must be at least 1"),
        ({"density": 1.5}, r"density is 1.5; it must be within 0..1"),
        ({"memory_slack": 0.5}, "memory_slack is 0.5; it must be at least 1"),
        ({"optics": "fibre"}, "optics is 'fibre'; use one of: one_way, duplex"),
        ({"overlap": "some"}, "overlap is 'some'; use one of: none, full"),
        ({"mean_bytes": 0.0}, "mean_bytes is 0.0; it must be positive"),
        ({"strategies": "many"}, "strategies is 'many'; it must be a whole number"),
        ({"colour": 1}, "kind 'random' takes no option 'colour'; it takes: compressors, degree"),
    ],
    "compression forward-network": [
        ({"model": "lenet"}, "model is 'lenet'; use one of: vgg16"),
        ({"forward_part": 0.0}, "forward_part is 0.0; it must be positive"),
        ({"parts": (2, 4)}, r"parts is \[2, 4\]; give increasing numbers, the first of them 1"),
        ({"parts": ()}, r"parts is \[\]; give increasing numbers"),
        ({"network_gigabit_per_s": 0.0}, "network_gigabit_per_s is 0.0; it must be positive"),
        ({"lanes": True}, "takes no option 'lanes'"),
    ],
    "compression forward-random": [
        ({"gradients": 0}, "gradients is 0; it must be at least 1"),
        ({"parts": (1, 1)}, r"parts is \[1, 1\]"),
    ],
    "compression levels-network": [
        ({"compressor": "zip"}, "compressor is 'zip'; use one of: powersgd, top_k, qsgd"),
        ({"model": "lenet"}, "model is 'lenet'; use one of: vgg16, resnet50, bert, gpt2"),
        ({"workers": 1}, "workers is 1; it must be at least 2"),
        ({"network_gigabit_per_s": 0.0}, "network_gigabit_per_s is 0.0; it must be positive"),
        ({"like": -1.0}, "like is -1.0; it must be positive"),
        ({"points": 1}, "points is 1; it must be at least 2"),
        ({"goal": "fun"}, "goal is 'fun'; use one of: time, error"),
    ],
    "compression levels-random": [
        ({"budget_part": 1.5}, "budget_part is 1.5; it must be within 0..1"),
        ({"gradients": 0}, "gradients is 0; it must be at least 1"),
    ],
    "compression network": [
        ({"model": "lenet"}, "model is 'lenet'; use one of: vgg16"),
        ({"intra": "pci"}, "intra is 'pci'; use one of: nvlink, pcie"),
        ({"compressors": ["zip"]}, "compressor is 'zip'"),
        ({"compressors": ["powersgd:5000"]}, "rank is 5000 for powersgd, but no gradient has a rank above 4096"),
        (
            {"compressors": "dgc:0.01"},
            r"compressors is 'dgc:0.01'; it must be a list such as \[\"a\", \"b\"\], each a word, or left out",
        ),
        ({"nodes": 1, "gpus_per_node": 1}, "a single GPU sends nothing"),
        ({"nodes": 0}, "nodes is 0; it must be at least 1"),
        ({"batch": 0}, "batch is 0; it must be at least 1"),
        ({"network_gigabit_per_s": 0}, "network_gigabit_per_s is 0; it must be positive"),
        ({"cost_model": "guess"}, "cost_model is 'guess'; use one of: derived, espresso, hipress, hipress-ring"),
        ({"cost_model": "espresso", "network_gigabit_per_s": 10}, "leave out network_gigabit_per_s"),
        ({"cost_model": "espresso", "compressors": ["top_k:0.1"]}, "takes one compressor of random_k, dgc, sign"),
        ({"cost_model": "espresso", "compressors": ["sign", "dgc:0.1"]}, "takes one compressor of random_k"),
        ({"cost_model": "hipress"}, "HiPress's costs are for 4, 8, 16 nodes of 1 GPU"),
        ({"error_budget_part": -0.1}, "error_budget_part is -0.1; it must be at least 0"),
        ({"speed": 1}, "kind 'network' takes no option 'speed'"),
    ],
    "compression random": [
        ({"gradients": 0}, "gradients is 0; it must be at least 1"),
        ({"options": 99}, f"options is 99; there are {MOST_OPTIONS}, no compression included"),
        ({"nodes": 1}, "nodes is 1; it must be at least 2"),
        ({"goal": "speed"}, "goal is 'speed'; use one of: time, error"),
        ({"intra": "bus"}, "intra is 'bus'; use one of: nvlink, pcie"),
        ({"error_budget_part": 1.5}, "error_budget_part is 1.5; it must be within 0..1"),
        ({"network_gigabit_per_s": 0.0}, "network_gigabit_per_s is 0.0; it must be positive"),
        ({"gradients": 2.5}, "gradients is 2.5; it must be a whole number"),
    ],
    "compression sfb-network": [
        ({"model": "alexnet"}, "model is 'alexnet'; use one of: vgg16, vgg19"),
        ({"batch": 0}, "batch is 0; it must be at least 1"),
        ({"workers": 1}, "workers is 1; it must be at least 2"),
        ({"workers": 2.5}, "workers is 2.5; it must be a whole number"),
        ({"network_gigabit_per_s": 0}, "network_gigabit_per_s is 0; it must be positive"),
        ({"cost_model": "wire"}, "cost_model is 'wire'; use one of: per_link, total_bytes, tag_code"),
        ({"broadcast": "all"}, "broadcast is 'all'; use one of: per_tensor, per_edge"),
        ({"accelerator": "h99"}, "accelerator is 'h99'; use one of: v100, a100"),
        ({"memory_budget_bytes": -1}, "memory_budget_bytes"),
    ],
    "compression sfb-random": [
        ({"operators": 1}, "operators is 1; it must be at least 2"),
        ({"operators": 2.5}, "operators is 2.5; it must be a whole number"),
        ({"shape": "tree"}, "shape is 'tree'; use one of: training, any"),
        ({"width": 0}, "width is 0"),
        ({"replicas": 0}, "replicas is 0"),
        ({"samples": 0}, "samples is 0"),
        ({"network_gigabit_per_s": 0.0}, "network_gigabit_per_s is 0.0; it must be positive"),
        ({"fixed_part": 1.5}, "fixed_part is 1.5; it must be within 0..1"),
        ({"cost_model": "free"}, "cost_model is 'free'; use one of"),
        ({"broadcast": "never"}, "broadcast is 'never'; use one of"),
        ({"penalty_s": -1.0}, "penalty_s is -1.0"),
        ({"memory_part": 2.0}, "memory_part is 2.0"),
        ({"compute_part": -0.1}, "compute_part is -0.1"),
        ({"layers": 3}, "kind 'sfb-random' takes no option 'layers'"),
    ],
    "deployment pipeline": [
        ({"shape": "tree"}, "shape is 'tree'; use one of: chain, branches, random, layered, cells"),
        ({"shape": "cells", "width": 0}, "width is 0"),
    ],
    "deployment network": [
        ({"model": "alexnet"}, "model is 'alexnet'"),
        ({"groups": 0}, "groups is 0; it must be at least 1"),
        ({"batch": 0}, "batch is 0"),
        ({"devices_of": "moon"}, "devices_of is 'moon'"),
        ({"model": 3}, "model is 3; it must be a word"),
        ({"grouping": "random"}, "grouping is 'random'; use one of: consecutive, metis"),
    ],
    "gossip matchings": [
        ({"share": 0.0}, "share"),
        ({"slowest": 0.5}, "slowest is 0.5"),
        ({"activation": "both"}, "activation is 'both'"),
        ({"shape": "knot"}, "shape is 'knot'"),
        ({"nodes": 1}, "nodes is 1"),
    ],
    "gossip exchange-drift": [
        ({"sends": 1, "send_cost": 1.0}, "sends is 1 and send_cost is 1; give one of them"),
        ({"steps": 1}, "steps is 1; it must be at least 2"),
        ({"sends": -1}, "sends is -1; it must be at least 0"),
        ({"send_cost": 0.0}, "send_cost is 0.0; it must be positive"),
        ({"norm": "max"}, "norm is 'max'; use one of: squared, plain"),
        ({"pull": -0.5}, "pull is -0.5; it must be within 0..1"),
        ({"noise": -0.5}, "noise is -0.5; it must be at least 0"),
    ],
    "gossip exchange-digits": [
        ({"model": "cnn"}, "model is 'cnn'; use one of: mlp, logistic"),
        ({"batch": 1500}, "batch is 1500; there are 1437 images"),
        ({"axes": 1}, "axes is 1; it must be at least 2"),
    ],
    "scheduling elastic": [
        ({"types": "v100"}, "types has 'v100'; write a name and a speed, such as 'v100:1,k80:0.2'"),
        ({"types": "v100:1,v100:2"}, "types has 'v100' twice"),
        ({"types": "v100:0"}, "types, speed of 'v100', is 0"),
        ({"types": "a:1,b:1", "gpus": 1}, "types has 2 types, but there are 1 GPUs"),
        ({"servers": 3}, "kind 'elastic' takes no option 'servers'; it takes: arrival_part, "),
        ({"jobs": 0}, "jobs is 0; it must be at least 1"),
        ({"jobs": 2.5}, "jobs is 2.5; it must be a whole number"),
        ({"jobs": True}, "jobs is True; it must be a whole number"),
        ({"gpus": "8"}, "gpus is '8'; it must be a whole number"),
        ({"gpus": 0}, "gpus is 0; it must be at least 1"),
        ({"load": math.nan}, "load is nan; it must be a finite number"),
        ({"load": 0}, "load is 0; it must be positive"),
        ({"slack": -1}, "slack is -1; it must be positive"),
        ({"arrival_part": 2}, "arrival_part is 2; it must be within 0..1"),
        ({"deadline_part": -0.5}, "deadline_part is -0.5; it must be within 0..1"),
        ({"utility": "best"}, "utility is 'best'; use one of: capped, logarithmic"),
        ({"widths": "odd"}, "widths is 'odd'; use one of: powers, any"),
        ({"rigid": 1}, "rigid is 1; it must be true or false"),
        ({"latency_s": -1}, "latency_s is -1; it must be at least 0"),
        ({"idle_w": -1.0}, "idle_w is -1.0; it must be at least 0"),
        ({"worker_w": -2}, "worker_w is -2; it must be at least 0"),
        ({"bandwidth": "shared"}, "bandwidth is 'shared', but there is no network"),
    ],
    "scheduling caps": [
        ({"slot_s": 3}, "kind 'caps' takes no option 'slot_s'"),
        ({"narrow_part": 1.0}, "narrow_part is 1.0, which makes 4 of 4 GPUs"),
    ],
    "scheduling contended": [
        ({"servers": 0}, "servers is 0; it must be at least 1"),
        ({"rings_per_nic": 0.0}, "nic_bytes_per_s is 0.0; it must be positive"),
    ],
    "scheduling leaf-spine": [
        ({"rack_servers": 0}, "rack_servers is 0"),
        ({"oversubscription": -1.0}, "oversubscription is -1.0"),
    ],
    "scheduling random-network": [
        ({"switches": 0}, "switches is 0"),
        ({"extra_links": -1}, "extra_links is -1"),
        ({"rings_per_trunk": 0.0}, "trunk_bytes_per_s is 0.0"),
    ],
    "scheduling pd-ors-like": [({"network": "ring"}, "network is 'ring'; use one of: none, star, leaf-spine")],
    "scheduling sjf-bco": [
        ({"gpus": 16}, "widest is 32, but there are 16 GPUs; lower it to 16"),
        ({"contention": True, "share": 2.0}, "share is 2.0; it must be within 0..1"),
    ],
    "scheduling departures": [
        ({"slots": 3, "jobs": 3}, "slots is 3; departures need an even number"),
        ({"jobs": 5}, "jobs is 5; use a multiple of the 2 slots"),
        ({"jobs": 4, "gpus": 3}, "gpus is 3; use a multiple of the 2 jobs of a slot"),
        ({"edge": 0}, "edge is 0; it must be positive"),
    ],
    "scheduling bursty": [
        ({"jobs": 8}, "jobs is 8; 6 bursts need at least 12"),
        ({"bursts": 12}, "bursts is 12, of 2 slots each; 24 slots leave no calm"),
    ],
    "scheduling small": [
        ({"limited_by": "time"}, "limited_by is 'time'; use one of: workers, contention, network, sharing"),
        ({"servers": 0}, "servers is 0; it must be at least 1"),
    ],
    "scheduling tiny": [({"feature": "speed"}, "feature is 'speed'; use one of: capped, ")],
    "topology all-to-all": [
        ({"servers": 1, "degree": 1}, "servers is 1; a topology needs at least 2"),
        ({"servers": 4, "degree": 2, "bytes_per_pair": -1.0}, r"traffic_bytes\[0\]\[1\] = -1 is negative"),
    ],
    "topology random": [
        ({"servers": -3, "degree": 1}, "servers is -3"),
        ({"servers": 4, "degree": 2, "seed": -1}, "seed is -1; it must be a whole number of 0 to"),
        ({"servers": 4, "degree": 2, "density": 0}, "density is 0; the part of the pairs"),
        ({"servers": 4, "degree": 2, "density": 1.5}, "density is 1.5"),
        ({"servers": 4, "degree": 2, "shape": -1.0}, "shape is -1.0; it must be positive"),
        ({"servers": 4, "degree": 2, "mean_bytes": np.inf}, "mean_bytes is inf"),
        ({"servers": 4, "degree": 2, "density": "high"}, "density is 'high'; it must be a number"),
        ({"servers": 4, "degree": 2, "shape": None}, "shape is None; it must be a number"),
    ],
    "topology ring": [
        ({"servers": 4, "degree": 0}, "degree is 0, but 4 servers need a degree of 1..3"),
        ({"servers": 4, "degree": 2, "bytes_per_pair": np.nan}, r"traffic_bytes\[0\]\[1\] = nan is not finite"),
        ({"servers": 4, "degree": 2, "optics": "both"}, "optics: Input should be 'one_way' or 'duplex'"),
        ({"servers": 4, "degree": 2, "stride": 8}, "stride is 8, which leads each of 4 servers to itself; use 1..3"),
        (
            {"servers": 4, "degree": 2, "colour": 1},
            "kind 'ring' takes no option 'colour'; it takes: servers, degree, b",
        ),
        ({"servers": 4, "degree": 2, "servers_": 1}, "kind 'ring' takes no option 'servers_'"),
        ({"servers": 4, "degree": 2, "jobs": 3}, "kind 'ring' takes no option 'jobs'"),
        ({}, "kind 'ring' of a topology instance needs servers and degree"),
        ({"servers": 4}, "kind 'ring' of a topology instance needs degree"),
        ({"servers": 4.5, "degree": 2}, r"servers is 4\.5; it must be a whole number"),
        ({"servers": 4, "degree": "two"}, "degree is 'two'; it must be a whole number"),
    ],
    "topology dlrm": [
        ({"servers": 4, "degree": 4}, "degree is 4, but 4 servers need a degree of 1..3"),
        ({"servers": 8, "degree": 2, "density": 1}, "kind 'dlrm' takes no option 'density'"),
    ],
    "topology hybrid": [
        ({"servers": 8, "degree": 2, "group_size": 3}, "group_size is 3, but equal groups of 8 servers"),
        ({"servers": 8, "degree": 2, "group_size": 1}, "group_size is 1, but"),
    ],
}


@for_each(("kind", "options", "message"), [(kind, *refused) for kind, table in REFUSED.items() for refused in table])
def test_an_odd_option_is_one_line(kind, options, message):
    with one_line((InstanceError, OptionError), match=message):
        generate(*kind.split(), **options)


@pytest.mark.parametrize(("network", "option", "number"), [("circulant", "offsets", 1), ("torus", "dimensions", 4)])
def test_a_list_of_one_number_may_be_that_number(network, option, number):
    made = [
        generate("topology", "collective", network=network, accelerators=4, **{option: value})
        for value in (str(number), number)
    ]
    assert made[0].links == made[1].links
