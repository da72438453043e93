"""Generators of scheduling instances: what they promise, and that greedy loses where they say so."""

import math

import numpy as np
import pytest
from volume import for_each, slow

import ddlopt
from ddlopt.instances.generators.clusters import gpu_servers, leaf_spine, network_of, random_graph, star
from ddlopt.instances.generators.scheduling import KINDS, generate
from ddlopt.instances.generators.scheduling.jobs import enough_slots
from ddlopt.instances.generators.scheduling.tiny import FEATURES
from ddlopt.instances.workloads.cluster_models import CLUSTER_MODELS, cluster_model, models_by_gpu_hours
from ddlopt.models.errors import UnknownNameError
from ddlopt.solvers.contracts import Limits
from ddlopt.solvers.scheduling.gadget import Gadget


def at_full_width(instance, job):
    """Slots that a job wants at its full width."""
    return instance.jobs[job].minibatches / instance.progress(job, instance.jobs[job].max_workers)


# All kinds ------------------------------------------------------------------------------------------------------------


def test_fields_of_the_instance_can_be_given():
    instance = generate("elastic", 3, jobs=4, name="mine", objective="max_min", preemptive=False)
    assert (instance.name, instance.objective, instance.preemptive) == ("mine", "max_min", False)
    assert "objective max_min, preemptive False" in instance.source
    assert generate("sjf-bco", jobs=5, gpus=32).objective == "makespan"
    assert generate("sjf-bco", jobs=5, gpus=32, objective="completion").objective == "completion"


def test_types_add_to_what_is_drawn_without_them():
    plain, typed = generate("elastic", 3), generate("elastic", 3, types="v100:1,p100:0.45,k80:0.2")
    assert [group.type for group in typed.servers] == ["v100", "p100", "k80"]
    assert typed.capacity.sum() == plain.capacity.sum() == 16
    assert tuple(job.model_copy(update={"speeds": {}}) for job in typed.jobs) == plain.jobs
    for job in typed.jobs:
        power = math.log(job.speeds["k80"]) / math.log(0.2)
        assert 0.249 < power < 1.751
        assert job.speeds == pytest.approx({"v100": 1, "p100": 0.45**power, "k80": 0.2**power}, rel=1e-3)


@for_each("kind", KINDS)
def test_where_all_jobs_have_to_finish_they_can(kind):
    objective = ("makespan", "completion")[KINDS.index(kind) % 2]
    instance = generate(kind, 1, objective=objective)
    assert all(job.deadline is None for job in instance.jobs)
    assert ddlopt.solve(instance, "fifo").checked


def test_a_horizon_that_is_asked_for_stays():
    assert generate("elastic", 1, objective="makespan", slots=4).slots == 4


# Drawn at random ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(3))
def test_elastic_jobs_want_the_load(seed):
    instance = generate("elastic", seed, jobs=60, slots=30, gpus=32, load=2.0, arrival_part=0.5)
    wanted = sum(job.max_workers * at_full_width(instance, i) for i, job in enumerate(instance.jobs))
    assert wanted == pytest.approx(2.0 * 30 * 32, rel=0.05)  # short jobs are lengthened to a tenth of a slot
    assert {job.max_workers for job in instance.jobs} == {2, 4, 8}
    assert {job.min_workers for job in instance.jobs} == {1}
    arrivals = [job.arrival for job in instance.jobs]
    assert arrivals == sorted(arrivals)
    assert arrivals[0] == 0
    assert 10 < max(arrivals) < 15
    assert instance.capacity.sum() == 32


def test_rigid_jobs_deadlines_and_widths():
    instance = generate("elastic", 1, jobs=200, slots=50, widths="any", rigid=True, deadline_part=0.5, slack=3.0)
    assert {job.max_workers for job in instance.jobs} == set(range(2, 9))
    assert all(job.min_workers == job.max_workers for job in instance.jobs)
    due = [i for i, job in enumerate(instance.jobs) if job.deadline is not None]
    assert 70 < len(due) < 130
    for i in due:
        job = instance.jobs[i]
        assert job.deadline == min(50, job.arrival + max(1, math.ceil(3.0 * at_full_width(instance, i) * (1 - 1e-3))))


def test_values_by_size():
    even, by_size = (generate("elastic", 1, jobs=100, by_size=flag) for flag in (False, True))
    sizes = np.array([job.max_workers * at_full_width(even, i) for i, job in enumerate(even.jobs)])
    ratio = [two.utility.value / one.utility.value for one, two in zip(even.jobs, by_size.jobs, strict=True)]
    assert ratio == pytest.approx(sizes / sizes.mean(), rel=2e-3)
    assert all(1 <= job.utility.value <= 10 for job in even.jobs)


def test_pd_ors_like_is_within_its_ranges():
    instance = generate("pd-ors-like", 1, jobs=300)
    assert instance.resources == ("cpu", "gpu", "memory_bytes", "storage_bytes")
    lows, highs = instance.demand.min(axis=0), instance.demand.max(axis=0)
    assert lows.tolist() == [1, 0, 2e9, 5e9]
    assert highs.tolist() == [10, 4, 32e9, 10e9]
    assert all(30e6 <= job.timing.gradient_bytes <= 575e6 for job in instance.jobs)
    assert all(1 <= job.timing.batch_samples <= 200 for job in instance.jobs)
    for job in instance.jobs:
        samples = job.minibatches * job.timing.batch_samples
        assert 50 * 2e4 * 0.999 <= samples <= 200 * 5e5 * 1.001
        assert job.deadline is None or 1 <= job.deadline - job.arrival <= 15
    assert 70 < sum(job.deadline is not None for job in instance.jobs) < 140
    assert not instance.needs_rings
    assert generate("pd-ors-like", 1, network="leaf-spine").network.is_tree(100)


def test_pd_ors_like_jobs_fit_small_clusters():
    assert generate("pd-ors-like", 1, jobs=100, servers=1).server_count == 1


def test_sjf_bco_mix():
    instance = generate("sjf-bco", 1)
    widths = [job.max_workers for job in instance.jobs]
    assert {width: widths.count(width) for width in set(widths)} == {1: 80, 2: 14, 4: 26, 8: 30, 16: 8, 32: 2}
    assert instance.server_count == 20
    assert {group.capacity["gpu"] for group in instance.servers} <= {4, 8, 16, 32}
    small = [job.max_workers for job in generate("sjf-bco", 1, jobs=16).jobs]
    assert {width: small.count(width) for width in set(small)} == {1: 8, 2: 1, 4: 3, 8: 3, 16: 1}
    assert all(job.min_workers == job.max_workers for job in instance.jobs)
    assert (instance.preemptive, instance.objective) == (False, "makespan")


@pytest.mark.parametrize("gpus", [3, 32, 67])
def test_sjf_bco_servers_add_up(gpus):
    assert generate("sjf-bco", 1, jobs=10, widest=1, gpus=gpus).capacity.sum() == gpus


def test_sjf_bco_iterations():
    instance = generate("sjf-bco", 2)
    for job in instance.jobs:
        iteration_s, alone_s = job.timing.iteration_s(job.max_workers), job.timing.iteration_s(1)
        assert 0.01 * 0.999 <= iteration_s <= 0.05 * 1.001
        assert 1000 <= job.minibatches / job.max_workers <= 6000
        if job.max_workers > 1:
            assert 0.05 * 0.99 <= (iteration_s - alone_s) / iteration_s <= 0.15 * 1.01


@for_each("seed", range(6))
def test_any_list_schedule_of_rigid_jobs_ends_in_time(seed):
    instance = generate("sjf-bco", seed, jobs=30, gpus=32)
    lengths = [math.ceil(at_full_width(instance, i)) for i in range(30)]
    horizon = enough_slots(list(instance.jobs), 32, instance.slot_s)
    assert instance.slots == horizon
    rng = np.random.default_rng(seed)
    for _ in range(20):
        waiting, running, free, slot = rng.permutation(30).tolist(), [], 32, 0
        while waiting or running:
            free += sum(instance.jobs[job].max_workers for end, job in running if end == slot)
            running = [each for each in running if each[0] > slot]
            for job in list(waiting):
                if instance.jobs[job].max_workers <= free:
                    free -= instance.jobs[job].max_workers
                    running.append((slot + lengths[job], job))
                    waiting.remove(job)
            slot += bool(waiting or running)
        assert slot <= horizon


def test_contention_slows_the_horizon():
    plain, slowed = (generate("sjf-bco", 1, jobs=12, gpus=16, widest=8, contention=flag) for flag in (False, True))
    assert slowed.contention.between_servers_bytes_per_s == 12.5e9
    assert plain.contention is None
    assert plain.jobs == slowed.jobs
    assert plain.slots < slowed.slots


# Where greedy loses ---------------------------------------------------------------------------------------------------


def greedy(instance):
    return Gadget().solve(instance, Limits()).objective


def optimum(instance):
    """Of linear jobs by the transport problem: a GPU slot is worth the same to a job wherever it gets it."""
    from scipy.optimize import linprog

    cells = [(i, t) for i, job in enumerate(instance.jobs) for t in range(job.arrival, instance.last_slot(i))]
    worth = [instance.jobs[i].utility.value / instance.jobs[i].minibatches for i, _ in cells]
    rows, limits = [], []
    for t in range(instance.slots):
        rows.append([slot == t for _, slot in cells])
        limits.append(instance.capacity.sum())
    for i, job in enumerate(instance.jobs):
        rows.append([owner == i for owner, _ in cells])
        limits.append(job.minibatches)
    bounds = [(0, instance.jobs[i].max_workers) for i, _ in cells]
    found = linprog(-np.array(worth), np.array(rows, dtype=float), limits, bounds=bounds, method="highs")
    assert found.status == 0
    return -found.fun


@for_each("edge", [0.02, 1e-6])
@for_each("sizes", [{"jobs": 12, "slots": 4, "gpus": 6}, {"jobs": 16, "slots": 16, "gpus": 3}, slow({})])
def test_greedy_gets_half_when_jobs_leave(sizes, edge):
    instance = generate("departures", edge=edge, **sizes)
    assert min(job.utility.value for job in instance.jobs) < max(job.utility.value for job in instance.jobs)
    half = len(instance.jobs) / 2
    assert greedy(instance) == pytest.approx(half * (1 + edge), rel=1e-9)
    assert optimum(instance) == pytest.approx(half * (2 + edge), rel=1e-9)


@pytest.mark.parametrize("narrow_part", [0.25, 0.5, 0.75])
def test_greedy_gets_three_quarters_with_caps(narrow_part):
    instance = generate("caps", slots=8, gpus=8, narrow_part=narrow_part, edge=1e-5)
    assert optimum(instance) == pytest.approx(64, rel=1e-4)
    assert greedy(instance) / optimum(instance) == pytest.approx(1 - narrow_part + narrow_part**2, rel=1e-4)


def test_a_worker_of_the_hard_kinds_does_a_minibatch_a_slot():
    for kind in ("departures", "caps"):
        instance = generate(kind, gpus=8)
        for i, job in enumerate(instance.jobs):
            assert [instance.progress(i, width) for width in job.widths] == list(job.widths)


def test_bursts_leave_calm_for_what_can_wait():
    instance = generate("bursty", 3, jobs=60, slots=40, bursts=7, gpus=16)
    urgent = [i for i, job in enumerate(instance.jobs) if job.deadline is not None]
    assert len(urgent) == 30
    starts = {instance.jobs[i].arrival for i in urgent}
    assert len(starts) == 7
    for start in starts:
        crowd = [i for i in urgent if instance.jobs[i].arrival == start]
        assert {instance.jobs[i].deadline for i in crowd} == {start + 2}
        wanted = sum(at_full_width(instance, i) * instance.jobs[i].max_workers for i in crowd)
        assert wanted == pytest.approx(1.5 * 2 * 16, rel=1e-3)
    patient = [i for i in range(60) if i not in urgent]
    wanted = sum(at_full_width(instance, i) * instance.jobs[i].max_workers for i in patient)
    assert wanted == pytest.approx(16 * (40 - 14), rel=1e-3)
    for i, job in enumerate(instance.jobs):
        worth = job.utility.value / (at_full_width(instance, i) * job.max_workers)
        assert 0.999 <= worth <= (1.001 if i in urgent else 1.201)


# Clusters -------------------------------------------------------------------------------------------------------------


def test_gpu_servers_add_up():
    assert [(group.count, group.capacity["gpu"]) for group in gpu_servers(20, 8)] == [(2, 8), (1, 4)]
    assert [(group.count, group.capacity["gpu"]) for group in gpu_servers(3, 8)] == [(1, 3)]
    assert [(group.count, group.capacity["gpu"]) for group in gpu_servers(16, 8)] == [(2, 8)]


def test_trees():
    tree = star(3, 5.0)
    assert tree.is_tree(3)
    assert set(tree.links) == {(0, 3, 5.0), (1, 3, 5.0), (2, 3, 5.0)}
    tree = leaf_spine(5, 2, 4.0, 2.0)
    assert tree.is_tree(5)
    assert tree.switches == 4
    assert [link for link in tree.links if link[1] == 8] == [(5, 8, 4.0), (6, 8, 4.0), (7, 8, 4.0)]
    assert [link[1] for link in tree.links[:5]] == [5, 5, 6, 6, 7]


@for_each("extra", [0, 1, 3, 100])
def test_random_graphs_are_connected(extra):
    for seed in range(10):
        network = random_graph(np.random.default_rng(seed), 6, 5, extra, 1.0, 2.0)
        assert not network.unreachable(6)
        assert len(network.links) == 6 + 4 + min(extra, 6)
        assert network.is_tree(6) == (extra == 0)


def test_random_trees_differ_in_shape():
    trees = [random_graph(np.random.default_rng(seed), 1, 5, 0, 1.0, 2.0) for seed in range(20)]
    assert {max(len(ends) for node, ends in tree.neighbours.items() if node) for tree in trees} >= {2, 3, 4}


def test_network_by_name():
    assert network_of("none", 4, 1.0) is None
    assert network_of("star", 1, 1.0) is None
    assert network_of("star", 4, 1.0).switches == 1
    assert network_of("leaf-spine", 9, 1.0).switches == 4


# Tiny -----------------------------------------------------------------------------------------------------------------


ABOUT = {
    "deadlines": lambda job: job.deadline is not None,
    "min_workers": lambda job: job.min_workers == 2,
    "pollux": lambda job: job.timing.kind == "pollux",
    "energy": lambda each: each.energy_price_per_j and each.idle_w.all() and each.worker_w.all(),
    "gangs": lambda each: not each.preemptive and each.contention is None,
    "contention": lambda each: not each.preemptive and each.contention is not None,
    "unequal_servers": lambda each: [group.capacity["gpu"] for group in each.servers] == [3, 1],
    "resources": lambda each: each.resources == ("cpu", "gpu"),
    "star": lambda each: each.network.is_tree(3) and each.network.switches == 1,
    "tree": lambda each: each.network.is_tree(6) and each.network.switches == 4,
    "general": lambda each: each.network.duplex and not each.network.is_tree(3),
    "directed": lambda each: not each.network.duplex,
    "shared": lambda each: each.bandwidth == "shared",
    "types": lambda each: each.accelerators.matter and {job.speeds["slow"] for job in each.jobs} == {0.25, 0.5, 0.75},
    "least_runs": lambda each: all(job.least_run_slots == 2 for job in each.jobs),
    "change": lambda each: each.changes.cost_time and all(job.change_s == 0.5 for job in each.jobs),
}


@for_each("feature", FEATURES)
def test_tiny_instances_are_tiny_and_about_their_feature(feature):
    instances = [generate("tiny", seed, feature=feature) for seed in range(10)]
    for instance in instances:
        assert len(instance.jobs) <= 3
        assert instance.slots <= 4
        assert instance.capacity[:, 0].sum() <= 6
    if feature in ("capped", "logarithmic", "loss_curve", "fair", "all_or_nothing"):
        assert all(job.utility.kind == feature for each in instances for job in each.jobs)
    elif feature in ("max_min", "makespan", "completion", "finish_time_fairness"):
        assert all(each.objective == feature for each in instances)
    elif feature in ("deadlines", "min_workers", "pollux"):
        assert all(ABOUT[feature](job) for each in instances for job in each.jobs)
    else:
        assert all(ABOUT[feature](each) for each in instances)


@for_each("feature", ["makespan", "completion", "finish_time_fairness", "gangs", "contention"])
def test_tiny_jobs_that_must_finish_can_do_so_one_after_the_other(feature):
    for seed in range(20):
        instance = generate("tiny", seed, feature=feature)
        assert [math.ceil(at_full_width(instance, i)) for i in range(3)] == [2, 1, 1]
        assert instance.slots == 4


# What cluster jobs train ----------------------------------------------------------------------------------------------

# Parameters without task heads, as published with the models.
PARAMETERS = {
    "bert-tiny": 4_385_920,
    "bert-mini": 11_170_560,
    "bert-small": 28_763_648,
    "bert-medium": 41_373_184,
    "resnet50": 25_557_032,
    "vgg16": 138_357_544,
    "bert-base": 109_482_240,
    "bert-large": 335_141_888,
}


def test_gradients_are_those_of_published_parameters():
    assert {name: cluster_model(name).gradient_bytes / 4 for name in CLUSTER_MODELS} == PARAMETERS


def test_iteration_times_of_cluster_models():
    model = cluster_model("resnet50")
    timing = model.timing(12.5e9, latency_s=1e-5, overhead_s=1e-3)
    forward_s = model.forward_s_per_sample * 128
    assert model.backward_s == pytest.approx(2 * forward_s, rel=1e-3)
    assert forward_s >= 128 * 2 * 4.09e9 / 78e12  # published operations at the assumed rate of convolutions
    bytes_s = 2 * model.gradient_bytes / 12.5e9 + model.gradient_bytes / model.reduction_bytes_per_s
    assert timing.iteration_s(4) == pytest.approx(forward_s + model.backward_s + 1e-3 + 0.75 * bytes_s + 6e-5)
    iterations = [cluster_model(name).timing(1e9).iteration_s(1) for name in CLUSTER_MODELS]
    assert iterations == sorted(iterations)
    with pytest.raises(UnknownNameError, match="there is no model 'alexnet'; there are: bert-tiny"):
        cluster_model("alexnet")


def test_long_jobs_train_large_networks():
    hours = [0.5, 1.0, 1.5, 10.5, 100.5]
    classes = [models_by_gpu_hours(each) for each in hours]
    assert classes[0] == classes[1]
    assert len(set(classes)) == 4
    assert sorted(name for each in classes[1:] for name in each) == sorted(CLUSTER_MODELS)
