"""Programs for partitions against all partitions, and what they leave out."""

from typing import Any

import numpy as np
import pytest
from partition_cases import agrees, alike, optimum, several, solved
from volume import for_each, slow

from ddlopt import instances
from ddlopt.models.deployment.partition.blocks import blocks_of
from ddlopt.models.deployment.partition.bounds import least_crowd_s
from ddlopt.models.deployment.partition.contraction import contracted
from ddlopt.models.deployment.partition.evaluate import evaluate_partition
from ddlopt.models.deployment.partition.formulations.max_load_partition import MaxLoadPartition, packing_rows
from ddlopt.models.deployment.partition.formulations.tarnawski_latency import Tarnawski2020Latency
from ddlopt.models.deployment.partition.formulations.tarnawski_max_load import Tarnawski2020MaxLoad
from ddlopt.models.deployment.partition.instance import Partition, PartitionInstance
from ddlopt.solvers.backends import Highs
from ddlopt.solvers.contracts import Limits, Status
from ddlopt.solvers.exact import build_model, lp_relaxation


@pytest.mark.parametrize("fields", [{}, {"separate_passes": True}, {"contiguous": True}])
@pytest.mark.parametrize("cases", [2, slow(7)])
def test_largest_load_is_that_of_all_partitions(fields: dict[str, Any], cases: int) -> None:
    infeasible = 0
    for instance in [*several(cases, 100, **fields), *several(8, 100, processors=0, memory_bytes=4, **fields)]:
        best = optimum(instance)
        infeasible += best is None
        agrees(MaxLoadPartition(), instance, best)
        if best:
            agrees(MaxLoadPartition(best), instance, best)
            agrees(MaxLoadPartition(1.3 * best), instance, best)
        if not instance.contiguous:
            agrees(Tarnawski2020MaxLoad(), instance, best)
    assert infeasible


@for_each("cases", [4, slow(12)])
@for_each("subgraphs", [1, 2])
def test_latency_is_that_of_all_partitions(subgraphs: int, cases: int) -> None:
    for instance in several(cases, 300, goal="latency", subgraphs=subgraphs):
        agrees(Tarnawski2020Latency(), instance, optimum(instance))


@pytest.mark.parametrize("contiguous", [False, True])
def test_a_start_is_taken_with_its_devices_renamed(contiguous: bool) -> None:
    chain = alike(7, 3, contiguous=contiguous, processors=1)
    start = Partition(instance="chain", devices=(2, 2, 0, 0, 0, 1, 1))
    limit = evaluate_partition(chain, start).objective
    model = MaxLoadPartition(float(limit or 0))
    result = solved(model, chain, start)
    assert result.objective == pytest.approx(3.1)
    built = build_model("deployment", model, chain)
    model.start(built.deployment, chain, start)
    for variable in built.deployment.on.values():
        variable.fix(variable.value)
    # What it sets breaks no row.
    assert Highs().solve(built, Limits()).status is Status.OPTIMAL


def test_blocks_without_weight_join_a_neighbour() -> None:
    nodes = [{"name": "in", "accelerator_s": 0, "processor_s": 0, "transfer_s": 5}, {"name": "a", "accelerator_s": 3}]
    data = {"name": "two", "nodes": nodes, "edges": [(0, 1)], "accelerators": 1, "processors": 1, "memory_bytes": 1}
    instance = PartitionInstance.from_data(data)
    assert contracted(instance).members == ((0, 1),)
    heavy = [{**nodes[0], "memory_bytes": 1}, {**nodes[1], "memory_bytes": 1}]
    assert contracted(PartitionInstance.from_data({**data, "nodes": heavy})).members == ((0,), (1,))
    # A node that only a processor takes does not carry another off the accelerator.
    fast = [nodes[0], {"name": "a", "processor_s": 3}]
    assert contracted(PartitionInstance.from_data({**data, "nodes": fast})).count == 1
    bound = [{**nodes[0], "processor_s": None}, {"name": "a", "processor_s": 3}]
    assert contracted(PartitionInstance.from_data({**data, "nodes": bound})).count == 2


def test_blocks_that_wait_for_each_other_are_one_if_contiguous() -> None:
    nodes = [
        {"name": name, "accelerator_s": 1, "colour": colour} for name, colour in zip("abc", (0, 1, 0), strict=True)
    ]
    instance = alike(3, 2, nodes=nodes)
    assert blocks_of(instance).count == 2
    assert blocks_of(alike(3, 2, nodes=nodes, contiguous=True)).count == 1


def test_the_crowd_is_the_best_pigeonhole() -> None:
    # Of the five largest one accelerator of two has three: 3, 3 and 4 at least.
    assert least_crowd_s(np.array([3.0, 5, 4, 1, 4, 3, 1]), 2) == 10.0
    assert least_crowd_s(np.array([5.0, 4, 1]), 2) == 5.0
    assert least_crowd_s(np.array([1.0, 2.0, 0.0]), 2) == 0.0


def test_models_refuse_what_is_not_theirs() -> None:
    chain, late = alike(3, 2), alike(3, 2, goal="latency")
    for formulation in (MaxLoadPartition(), Tarnawski2020MaxLoad()):
        assert "throughput" in str(formulation.refuses(late))
    assert "latency" in str(Tarnawski2020Latency().refuses(chain))
    assert "order of devices" in str(Tarnawski2020MaxLoad().refuses(alike(3, 2, contiguous=True)))


def test_blocks_without_weight_stay_between_neighbours_that_need_an_order() -> None:
    nodes = [{"name": name, "accelerator_s": time, "transfer_s": 1} for name, time in (("in", 0), ("a", 3), ("b", 3))]
    assert contracted(alike(3, 2, nodes=nodes, edges=[(0, 1), (0, 2)], contiguous=True)).count == 3
    assert contracted(alike(3, 2, nodes=nodes, edges=[(0, 1), (0, 2)])).count == 2


def test_packing_rows_hold_for_all_that_fits() -> None:
    rng = np.random.default_rng(1)
    for _ in range(200):
        sizes = rng.choice([0.0, 0.1, 0.2, 0.25, 1 / 3, 0.4, 0.5, 0.51, 0.7, 1.0], size=6)
        rows = packing_rows(sizes)
        for chosen in range(64):
            inside = np.array([(chosen >> item) & 1 for item in range(6)])
            if inside @ sizes <= 1:
                assert all(inside @ row <= most + 1e-9 for row, most in rows)


def test_a_limit_raises_the_relaxation() -> None:
    """By what packing says of blocks of some tenth of the limit; the optimum is 6.5456 ms."""
    instance = instances.load("deployment/partition-n30-k4")
    bounds = [lp_relaxation(MaxLoadPartition(limit), instance).objective for limit in (None, 0.0065455903)]
    assert bounds == pytest.approx([0.0061141329, 0.0061940474], rel=1e-5)
