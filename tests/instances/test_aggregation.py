"""Generated and bundled instances of aggregation: networks, trees, hot sets, registers, slots and tables."""

import math

import library_cases
import numpy as np
import pytest
from refusals import one_line
from volume import for_each

from ddlopt.analysis.lookup_sums import sum_chain
from ddlopt.instances.generators.aggregation import generate
from ddlopt.instances.generators.aggregation.jobs import networks
from ddlopt.instances.generators.aggregation.slots import HARDWARE
from ddlopt.instances.library.aggregation.tree import example
from ddlopt.instances.workloads.cluster_models import cluster_model
from ddlopt.instances.workloads.sparse_batches import CRITEO_SAMPLE, zipf_frequencies
from ddlopt.models.aggregation.registers.batches import heat
from ddlopt.models.errors import OptionError
from ddlopt.solvers.aggregation.table.heuristics import UniformTables
from ddlopt.solvers.contracts import Limits


def bundled(problem):
    return [each for each in library_cases.bundled("aggregation").values() if each.problem == problem]


def degrees(instance):
    found = [0] * len(instance.nodes)
    for link in instance.links:
        for node in link.ends:
            found[node] += 1
    return found


def test_a_fat_tree_has_the_published_numbers_of_switches_hosts_and_ports():
    for k in (2, 4, 6):
        instance = generate("fat-tree", 0, k=k, jobs=1, workers=1)
        hosts = [v for v, node in enumerate(instance.nodes) if not node.forwards]
        assert len(hosts) == k**3 // 4
        assert len(instance.nodes) - len(hosts) == k * k + (k // 2) ** 2
        assert all(degree == (1 if v in hosts else k) for v, degree in enumerate(degrees(instance)))


def test_oversubscription_narrows_links_between_switches_only():
    instance = generate("fat-tree", 0, oversubscription=4.0, bandwidth_bytes_per_s=8.0)
    forwards = [node.forwards for node in instance.nodes]
    for link in instance.links:
        between = all(forwards[node] for node in link.ends)
        assert link.bandwidth_bytes_per_s == (2.0 if between else 8.0)


def test_leaves_see_all_spines():
    instance = generate("leaf-spine", 0, leaves=3, spines=2, hosts=5, jobs=1)
    by_name = dict(zip((node.name for node in instance.nodes), degrees(instance), strict=True))
    assert {by_name[f"leaf{i}"] for i in range(3)} == {7}
    assert {by_name[f"spine{i}"] for i in range(2)} == {3}


@for_each(("sides", "degree"), [([4, 4], 4), ([3, 3, 3], 6), ([2, 2], 2), ([5], 2), ([2, 3], 3)])
def test_a_torus_is_regular_and_has_a_host_at_every_switch(sides, degree):
    instance = generate("torus", 0, sides=sides, jobs=1, workers=1)
    switches = {d for d, node in zip(degrees(instance), instance.nodes, strict=True) if node.forwards}
    assert switches == {degree + 1}


def test_a_random_graph_is_regular_and_depends_on_the_seed():
    one, other = (generate("graph-random", seed, hosts=2) for seed in (1, 2))
    assert one.links != other.links
    switches = [d for d, node in zip(degrees(one), one.nodes, strict=True) if node.forwards]
    assert set(switches) == {5}


def test_jobs_share_no_host_while_there_are_enough():
    instance = generate("fat-tree", 3, jobs=4, workers=3)
    used = [node for job in instance.jobs for node in (*job.workers, job.server)]
    assert len(used) == len(set(used)) == 16
    crowded = generate("fat-tree", 3, jobs=5, workers=3)
    assert len({node for job in crowded.jobs for node in (*job.workers, job.server)}) == 16


def test_clustered_jobs_are_on_neighbouring_hosts():
    instance = generate("fat-tree", 5, jobs=1, workers=3, placement="clustered")
    (job,) = instance.jobs
    hosts = sorted((*job.workers, job.server))
    assert hosts == list(range(hosts[0], hosts[0] + 4))


def test_gradients_are_those_of_networks_or_as_asked_for():
    sizes = {float(network.gradient_bytes) for network in networks()}
    assert {job.gradient_bytes for job in generate("torus", 0).jobs} <= sizes
    assert {job.gradient_bytes for job in generate("torus", 0, gradient_bytes=5.0).jobs} == {5.0}


def test_the_bundled_instances_cover_goals_and_rules():
    made = bundled("graph")
    assert {each.goal for each in made} == {"utilization", "congestion", "rates"}
    assert any(each.connections is not None for each in made)
    assert any(each.aggregators is not None for each in made)
    assert any(each.merging for each in made)
    abilene = next(each for each in made if each.name == "abilene-congestion")
    assert "CC BY 4.0" in abilene.source
    assert len([1 for link in abilene.links if all(abilene.nodes[v].forwards for v in link.ends)]) == 14


def test_one_job_is_as_stated():
    instance = generate("hot-zipf", parameters=1000, workers=8, memory=0.05)
    job = instance.jobs[0]
    assert (job.workers, job.iterations_per_s, instance.switches[0].registers) == (8, 1.0, 50)
    stated = zipf_frequencies(10, CRITEO_SAMPLE.of_size(1000))
    assert np.sort(job.frequencies) == pytest.approx(np.sort(stated), rel=1e-3)


def test_racks_share_out_workers_and_registers():
    racks = {"switches": 4, "racks": True, "widths": (1, 2), "memory": 0.1}
    instance = generate("hot-zipf", 3, jobs=3, parameters=300, workers=16, **racks)
    assert [sum(own) for own in zip(*instance.passing, strict=True)] == [job.workers for job in instance.jobs]
    total = 0.1 * sum(int(job.widths.sum()) for job in instance.jobs)
    registers = [switch.registers for switch in instance.switches]
    assert total - 5 < sum(registers) <= total
    assert min(registers) >= int(total / 8)
    assert {int(width) for job in instance.jobs for width in job.widths} == {1, 2}


def test_bundled_hot_sets_are_of_all_sorts():
    made = bundled("hot")
    assert {len(instance.switches) for instance in made} >= {1, 2, 4, 8}
    assert any(job.saved_messages is not None for instance in made for job in instance.jobs)


def test_parameters_are_the_hottest_of_the_batches_that_count():
    options = {"arrays": 16, "batches": 30, "held_out": 20, "rows": 2, "goal": "collisions"}
    instance = generate("registers-zipf", 3, parameters=50, **options)
    assert (instance.parameters, instance.arrays, instance.entries, instance.goal) == (50, 16, 16, "collisions")
    assert (len(instance.batches), len(instance.held_out)) == (30, 20)
    assert (np.diff(heat(instance)) <= 0).all()
    # A parameter less hot than the last would be there with fewer parameters, too.
    fewer = generate("registers-zipf", 3, parameters=20, **options)
    assert fewer.batches == tuple(tuple(i for i in batch if i < 20) for batch in instance.batches)
    assert fewer.held_out == tuple(tuple(i for i in batch if i < 20) for batch in instance.held_out)


@pytest.mark.parametrize(("capacity", "each"), [(1.0, 4), (1.5, 5), (2.0, 7)])
def test_capacity_is_relative_to_the_parameters(capacity, each):
    assert generate("registers-zipf", 1, parameters=10, arrays=3, capacity=capacity).capacity == each


def test_bundled_registers_have_both_goals_and_both_kinds_of_packets():
    found = bundled("registers")
    assert {each.goal for each in found} == {"packets", "collisions"}
    assert {each.entries == each.arrays for each in found} == {True, False}


def test_sizes_are_those_of_the_published_programs():
    assert HARDWARE["switchml"] == (16384 // 2, 32 * 2 * 4)
    assert HARDWARE["atp"][0] * HARDWARE["atp"][1] == 5.12e6


def test_jobs_are_the_networks_they_are_named_after():
    instance = generate("slots", 4, jobs=20, servers=0.5)
    for job in instance.jobs:
        assert job.gradient_bytes == cluster_model(job.name.rpartition("-")[0]).gradient_bytes
        assert 5e-6 <= job.rtt_s <= 2e-5
        assert (4 in job.switches) == bool(job.links) == (len(job.switches) > 1)
        if job.fallback_bytes_per_s is not None:
            workers = job.nic_bytes_per_s / job.fallback_bytes_per_s
            assert workers == pytest.approx(round(workers), rel=1e-3)
    assert 0 < sum(job.fallback_bytes_per_s is None for job in instance.jobs) < 20


def test_options_of_slots_are_heard():
    options = {"jobs": 5, "racks": 1, "hardware": "atp", "memory": 0.5, "whole": True, "goal": "slowest"}
    instance = generate("slots", 4, name="x", **options)
    assert (instance.name, instance.whole, instance.goal, instance.links) == ("x", True, "slowest", ())
    assert [(switch.slots, switch.payload_bytes) for switch in instance.switches] == [(20_000, 128.0)]


def test_late_packets_come_to_the_same_jobs():
    plain = generate("slots", 4, jobs=20, servers=0.5)
    late = generate("slots", 4, jobs=20, servers=0.5, loss=1e-3, slow_chance=0.02, slow_us=50.0)
    assert all(job.delivery is None for job in plain.jobs)
    assert plain.jobs == tuple(job.model_copy(update={"delivery": None}) for job in late.jobs)
    for job in late.jobs:
        given = job.delivery
        assert given.workers[-1] in (4, 8, 16)
        assert len(job.switches) == 1 or sum(given.workers[:-1]) == given.workers[-1]
        assert max(given.workers[:-1], default=0) - min(given.workers[:-1], default=0) <= 1
        assert (given.delays_s, given.timeout_s) == ((5e-5,), 1e-3)
        assert 2.5e-4 <= given.loss <= 4e-3
        assert 0.005 <= given.chances[0] <= 0.08
    assert len({job.delivery.loss for job in late.jobs}) == 20
    assert all(job.delivery.delays_s == () for job in generate("slots", 4, loss=0.9).jobs)
    assert max(job.delivery.loss for job in generate("slots", 4, loss=0.9).jobs) == 0.5


def test_buckets_come_to_the_same_jobs():
    plain = generate("slots", 4, jobs=20, servers=0.5, loss=1e-3)
    sent = generate("slots", 4, jobs=20, servers=0.5, loss=1e-3, bucket_mb=25.0)
    assert plain.jobs == tuple(job.model_copy(update={"buckets": ()}) for job in sent.jobs)
    for job in sent.jobs:
        ready = [bucket.ready_s for bucket in job.buckets]
        assert len(ready) == math.ceil(job.gradient_bytes / 25e6)
        assert ready[-1] == job.compute_s
        assert ready[0] > 0
        begin = job.compute_s - cluster_model(job.name.rsplit("-", 1)[0]).backward_s
        assert np.diff(ready, prepend=begin) == pytest.approx(ready[0] - begin)
    with one_line(OptionError, "bucket_mb is 0.001, 437929 buckets of a job; at most 1000 are made"):
        generate("slots", 2, jobs=20, bucket_mb=0.001)


def test_stays_come_to_the_same_jobs():
    plain = generate("slots", 4, jobs=40)
    there = generate("slots", 4, jobs=40, at_once=8.0)
    assert plain.jobs == tuple(job.model_copy(update={"stay": None}) for job in there.jobs)
    begins = [job.stay.begins_s for job in there.jobs]
    assert begins == sorted(begins)
    lasts = [job.stay.ends_s - job.stay.begins_s for job in there.jobs]
    alone = [job.iterations * (job.compute_s + job.gradient_bytes / job.nic_bytes_per_s) for job in there.jobs]
    assert lasts == pytest.approx([2 * seconds for seconds in alone], rel=1e-3)
    # Little's law over the time in which they come; some are there after it.
    assert max(begins) <= sum(lasts) / 8
    counts = [sum(job.is_there(time_s) for job in there.jobs) for time_s in np.linspace(0, sum(lasts) / 8, 200)]
    assert 3 <= np.mean(counts) <= 9


def test_bundled_slots_have_both_goals():
    assert {instance.goal for instance in bundled("slots")} == {"total", "slowest"}


def test_the_tables_of_a_sum_of_integers():
    instance = generate("table", bits=5, fraction_bits=3, signed=True)
    assert [table.function for table in instance.tables] == ["log2", "log2-sum", "log2-difference", "exp2"]
    assert [(table.low, table.high) for table in instance.tables] == [(1, 31), (0, 40), (1, 40), (0, 48)]
    assert [table.step for table in instance.tables] == [0.125, 0.125, 0.125, None]
    assert [table.weight for table in instance.tables] == [math.log(2)] * 3 + [1]
    assert instance.budget_bytes == 8 * (31 + 41 + 40 + 49) // 4
    assert "kind table, seed 0, shape integers, bits 5" in instance.source


def test_the_tables_of_a_sum_of_mantissas():
    instance = generate(
        "table", shape="mantissas", bits=7, stepped=False, entries="prefixes", entry_bytes=6, budget_bytes=999
    )
    assert [(table.low, table.high) for table in instance.tables] == [(128, 255), (0, 12 * 1024), (0, 1023)]
    assert [table.fraction_bits for table in instance.tables] == [7, 10, 10]
    assert {table.entries for table in instance.tables} == {"prefixes"}
    assert {table.entry_bytes for table in instance.tables} == {6}
    assert {table.step for table in instance.tables} == {None}
    assert instance.tables[0].values[0] == 0


@for_each("shape", ["integers", "mantissas"])
@for_each("bits", [1, 2, 6])
def test_what_tables_answer_fits_the_next_one(shape, bits):
    instance = generate("table", shape=shape, bits=bits, signed=True, goal="max")
    solution = UniformTables().solve(instance, Limits()).solution
    chain = sum_chain(instance, solution)
    assert chain.normalized is (shape == "mantissas")
    if not chain.normalized:
        assert chain.logarithms.max() + chain.sums.max() < len(chain.powers)
        assert chain.logarithms.max() - chain.logarithms.min() < len(chain.sums)


def test_random_functions_differ_by_seed_alone():
    one, other = (generate("table", seed, shape="random", bits=4) for seed in (4, 5))
    assert one.tables != other.tables
    assert [table.operands for table in one.tables] == [16] * 3
    assert one.tables[1].step == 0.25
    assert generate("table", 4, shape="random", stepped=False).tables[1].step is None
    measures = {table.error for seed in range(5) for table in generate("table", seed, shape="random", bits=3).tables}
    assert measures == {"absolute", "relative"}


def test_the_library_has_every_kind_of_table():
    found = bundled("table")
    tables = [table for instance in found for table in instance.tables]
    assert {table.function for table in tables} == {"log2", "log2-sum", "log2-difference", "exp2", "samples"}
    assert {table.entries for table in tables} == {"ranges", "prefixes"}
    assert {instance.goal for instance in found} == {"sum", "max"}
    assert min(instance.size for instance in found) <= 16


def tree_depths(tree):
    found = {}
    for node in tree.order:
        above = tree.parents[node]
        found[node] = 0 if above is None else found[above] + 1
    return [found[node] for node in range(tree.size)]


def test_a_complete_tree():
    tree = generate("tree-complete", 3, arity=3, levels=4, loads="power", rates="exponential", message_s=0.5)
    assert tree.size == 1 + 3 + 9 + 27
    assert all(len(below) in (0, 3) for below in tree.children)
    level = tree_depths(tree)
    assert [bool(load) for load in tree.jobs[0].loads] == [each == 3 for each in level]
    assert all(2 <= load <= 63 for load in tree.jobs[0].loads if load)
    assert tree.seconds_per_message == tuple(0.5 / 2 ** (3 - each) for each in level)
    linear = generate("tree-complete", 3, arity=3, levels=4, rates="linear", message_s=6.0)
    assert linear.seconds_per_message == tuple(6.0 / (4 - each) for each in level)


def test_a_random_tree_has_what_was_asked_for():
    tree = generate("tree-random", 4, nodes=200, jobs=3, loaded=0.25, memory=2, capable=0.4, budget=None)
    assert tree.size == 200
    assert [sum(load > 0 for load in job.loads) for job in tree.jobs] == [50] * 3
    assert sorted(set(tree.memory)) == [0, 2]
    assert sum(room > 0 for room in tree.memory) == 80
    assert all(1 <= load <= 9 for job in tree.jobs for load in job.loads if load)
    assert tree.budget is None
    assert all(0.5 <= 1e-3 / seconds <= 2.0001 for seconds in tree.seconds_per_message)


def test_depth_goes_from_bushes_to_paths():
    deepest = [max(tree_depths(generate("tree-random", 1, nodes=300, depth=depth))) for depth in (0.0, 0.9, 1.0)]
    assert deepest[0] < 25 < deepest[1] < deepest[2] == 299


def test_bundled_trees():
    found = {tree.name: tree for tree in bundled("tree")}
    assert found["tree-soar-n7-k2"] == example()
    assert {tree.goal for tree in found.values()} == {"utilization", "congestion"}
    assert {len(tree.jobs) for tree in found.values()} == {1, 2, 4, 8}
    assert max(tree.size for tree in found.values()) == 1023
    assert max(tree_depths(found["tree-deep-n1000-k40"])) > 100
    assert np.mean([room == 0 for room in found["tree-random-n500-k25"].memory]) == pytest.approx(0.5)
