"""Programs for partitions against all partitions, and what they leave out."""

from typing import Any

import numpy as np
import pytest
from partition_cases import optimum, several
from volume import for_each, slow

from ddlopt.models.deployment.partition.blocks import blocks_of
from ddlopt.models.deployment.partition.contraction import contracted
from ddlopt.models.deployment.partition.evaluate import evaluate_partition
from ddlopt.models.deployment.partition.formulations.latency_partition import LatencyPartition
from ddlopt.models.deployment.partition.formulations.max_load_partition import MaxLoadPartition
from ddlopt.models.deployment.partition.formulations.tarnawski_latency import Tarnawski2020Latency
from ddlopt.models.deployment.partition.formulations.tarnawski_max_load import Tarnawski2020MaxLoad
from ddlopt.models.deployment.partition.instance import Partition, PartitionInstance
from ddlopt.models.deployment.partition.latency_sets import pieces_of
from ddlopt.models.deployment.partition.packing import crowd_of, packing_rows
from ddlopt.solvers.backends import Highs
from ddlopt.solvers.contracts import Limits, Status
from ddlopt.solvers.exact import Exact, build_model, lp_relaxation


def alike(count: int, accelerators: int, **fields: Any) -> PartitionInstance:
    """A chain of equal layers that only accelerators take."""
    nodes = [{"name": f"n{v}", "accelerator_s": 1.0, "transfer_s": 0.1, "memory_bytes": 1} for v in range(count)]
    edges = [(v, v + 1) for v in range(count - 1)]
    data = {"name": "chain", "nodes": nodes, "edges": edges, "accelerators": accelerators, "memory_bytes": 100}
    return PartitionInstance.from_data({**data, **fields})


def solved(formulation: Any, instance: PartitionInstance, start: Any = None) -> Any:
    return Exact("model", "deployment", formulation).solve(instance, Limits(gap=1e-6), start=start)


def agrees(formulation: Any, instance: PartitionInstance, best: float | None) -> None:
    result = solved(formulation, instance)
    if best is None:
        assert result.status is Status.INFEASIBLE
        return
    assert result.objective == pytest.approx(best)
    assert result.bound == pytest.approx(best, rel=1e-5, abs=1e-7)


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
    covered = 0
    for instance in several(cases, 300, goal="latency", subgraphs=subgraphs):
        best = optimum(instance)
        agrees(Tarnawski2020Latency(), instance, best)
        model = LatencyPartition()
        if model.refuses(instance) is None and model.scope(instance) is None:
            covered += 1
            agrees(model, instance, best)
            if best:
                agrees(LatencyPartition(1.2 * best), instance, best)
    assert covered or subgraphs > 1


def test_sets_wait_for_what_any_of_their_nodes_needs() -> None:
    # c on a processor is late; a and b are cheaper together, but then a waits for c too.
    nodes = [
        {"name": "a", "accelerator_s": 1, "processor_s": 30},
        {"name": "b", "accelerator_s": 1, "processor_s": 30},
        {"name": "c", "processor_s": 10},
        {"name": "d", "processor_s": 10},
    ]
    data = {"name": "late", "nodes": nodes, "edges": [(0, 3), (2, 1)], "accelerators": 1, "processors": 1}
    instance = PartitionInstance.from_data({**data, "memory_bytes": 1, "goal": "latency"})
    agrees(LatencyPartition(), instance, 22.0)
    agrees(Tarnawski2020Latency(), instance, 22.0)


def test_the_relaxation_by_sets_is_tight_on_a_chain() -> None:
    nodes = [{"name": f"n{v}", "accelerator_s": 1, "processor_s": 10, "transfer_s": 0.5, "memory_bytes": 1}
             for v in range(8)]  # fmt: skip
    chain = alike(8, 2, nodes=nodes, processors=1, goal="latency", memory_bytes=3)
    # Sets of three at both ends, one sends and the other fetches; two nodes on processors between them.
    best = 6 + 20 + 0.5 * 2
    assert lp_relaxation(LatencyPartition(), chain).objective == pytest.approx(best)
    assert lp_relaxation(Tarnawski2020Latency(), chain).objective < 0.8 * best
    agrees(LatencyPartition(), chain, best)


def test_the_crowd_bound_is_in_the_relaxation() -> None:
    chain = alike(7, 3)
    # Three of seven equal layers are on one of three accelerators.
    assert lp_relaxation(MaxLoadPartition(), chain).objective >= 3 - 1e-9
    assert lp_relaxation(Tarnawski2020MaxLoad(), chain).objective == pytest.approx(7 / 3)


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


def test_packing_rows_hold_for_all_that_fits() -> None:
    rng = np.random.default_rng(1)
    for _ in range(200):
        sizes = rng.choice([0.0, 0.1, 0.2, 0.25, 1 / 3, 0.4, 0.5, 0.51, 0.7, 1.0], size=6)
        rows = packing_rows(sizes, 4)
        for chosen in range(64):
            inside = np.array([(chosen >> item) & 1 for item in range(6)])
            if inside @ sizes <= 1:
                assert all(inside @ row <= most + 1e-9 for row, most in rows)


def test_the_crowd_is_the_best_pigeonhole() -> None:
    crowd = crowd_of(np.array([5.0, 4, 4, 3, 3, 1, 1]), 2)
    assert crowd is not None
    assert (sorted(crowd.blocks.tolist()), crowd.least, crowd.load_s) == ([0, 1, 2, 3, 4], 3, 10.0)
    assert crowd_of(np.array([1.0, 2.0, 0.0]), 2) is None


def test_pieces_are_all_convex_sets_that_fit() -> None:
    pieces = pieces_of(alike(5, 2, goal="latency", memory_bytes=3))
    assert pieces is not None
    assert len(pieces.members) == 5 + 4 + 3
    loads = dict(zip(pieces.members, pieces.load_s.tolist(), strict=True))
    assert loads[0, 1] == pytest.approx(2.1)
    assert loads[1, 2, 3] == pytest.approx(3.2)


def test_models_refuse_what_is_not_theirs() -> None:
    chain, late = alike(3, 2), alike(3, 2, goal="latency")
    for formulation in (MaxLoadPartition(), Tarnawski2020MaxLoad()):
        assert "throughput" in str(formulation.refuses(late))
    for formulation in (LatencyPartition(), Tarnawski2020Latency()):
        assert "latency" in str(formulation.refuses(chain))
    assert "order of devices" in str(Tarnawski2020MaxLoad().refuses(alike(3, 2, contiguous=True)))
    assert "several" in str(LatencyPartition().refuses(alike(3, 2, goal="latency", subgraphs=2)))


def test_blocks_without_weight_stay_between_neighbours_that_need_an_order() -> None:
    nodes = [{"name": name, "accelerator_s": time, "transfer_s": 1} for name, time in (("in", 0), ("a", 3), ("b", 3))]
    assert contracted(alike(3, 2, nodes=nodes, edges=[(0, 1), (0, 2)], contiguous=True)).count == 3
    assert contracted(alike(3, 2, nodes=nodes, edges=[(0, 1), (0, 2)])).count == 2
