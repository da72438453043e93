"""The program for latency by sets: against all partitions, and what it leaves out."""

import pytest
from partition_cases import agrees, alike, optimum, several
from volume import slow

from ddlopt.frontier.deployment.partition.formulations.convex_sets import pieces_of
from ddlopt.frontier.deployment.partition.formulations.latency_partition import LatencyPartition
from ddlopt.models.deployment.partition.formulations.tarnawski_latency import Tarnawski2020Latency
from ddlopt.models.deployment.partition.instance import PartitionInstance
from ddlopt.solvers.exact import lp_relaxation


@pytest.mark.parametrize("cases", [4, slow(12)])
def test_latency_is_that_of_all_partitions(cases: int) -> None:
    covered = 0
    for instance in several(cases, 300, goal="latency", subgraphs=1):
        best, model = optimum(instance), LatencyPartition()
        if model.refuses(instance) is None and model.scope(instance) is None:
            covered += 1
            agrees(model, instance, best)
            if best:
                agrees(LatencyPartition(1.2 * best), instance, best)
    assert covered


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


def test_pieces_are_all_convex_sets_that_fit() -> None:
    pieces = pieces_of(alike(5, 2, goal="latency", memory_bytes=3))
    assert pieces is not None
    assert len(pieces.members) == 5 + 4 + 3
    loads = dict(zip(pieces.members, pieces.load_s.tolist(), strict=True))
    assert loads[0, 1] == pytest.approx(2.1)
    assert loads[1, 2, 3] == pytest.approx(3.2)


def test_it_refuses_what_is_not_its_own() -> None:
    assert "latency" in str(LatencyPartition().refuses(alike(3, 2)))
    assert "several" in str(LatencyPartition().refuses(alike(3, 2, goal="latency", subgraphs=2)))
