"""Partition instances and their check: hand-made cases, violations, bad input, bounds."""

from fractions import Fraction
from typing import Any

import pytest
from partition_cases import optimum, several
from refusals import one_line
from volume import for_each

from ddlopt.models.deployment import DeploymentProblem, evaluate
from ddlopt.models.deployment.partition.bounds import partition_bound
from ddlopt.models.deployment.partition.evaluate import evaluate_partition
from ddlopt.models.deployment.partition.instance import Partition, PartitionInstance
from ddlopt.models.errors import InfeasibleError, InstanceError


def diamond(**fields: Any) -> PartitionInstance:
    """a -> b, c -> d; a's output takes 3 s, b's 1 s, c's 2 s."""
    times = {"a": (4, 40, 3), "b": (5, 50, 1), "c": (6, 60, 2), "d": (7, 70, 9)}
    data = {
        "name": "diamond",
        "nodes": [
            {"name": name, "accelerator_s": fast, "processor_s": slow, "transfer_s": moved, "memory_bytes": 10}
            for name, (fast, slow, moved) in times.items()
        ],
        "edges": [(0, 1), (0, 2), (1, 3), (2, 3)],
        "accelerators": 2,
        "processors": 1,
        "memory_bytes": 30,
        **fields,
    }
    return PartitionInstance.from_data(data)


def checked(instance: PartitionInstance, *devices: int, subgraphs: tuple[int, ...] = (), exact: bool = False) -> Any:
    answer = Partition(instance=instance.name, devices=devices, subgraphs=subgraphs)
    return evaluate_partition(instance, answer, exact)


def kinds(found: Any) -> list[str]:
    return [violation.kind for violation in found.violations]


def test_an_output_counts_once_on_each_accelerator_that_has_a_part_of_its_nodes() -> None:
    # a alone sends one output, which the other accelerator fetches once for b and c.
    found = checked(diamond(), 0, 1, 1, 0)
    assert found.feasible
    # 0: a + d, sends a, fetches b and c; 1: b + c, fetches a, sends b and c.
    assert found.objective == max(4 + 7 + 3 + 1 + 2, 5 + 6 + 3 + 1 + 2)
    assert found.details["transfer_s"] == 12
    assert found.details["accelerator_load_s"] == 17
    assert found.details["largest_memory_bytes"] == 20


def test_the_output_of_a_sink_moves_nowhere() -> None:
    assert checked(diamond(memory_bytes=40), 0, 0, 0, 0).objective == 22


def test_processors_pay_for_no_transfers() -> None:
    found = checked(diamond(), 0, 0, 0, 2)
    assert found.objective == 70
    assert found.details["processor_load_s"] == 70
    assert found.details["accelerator_load_s"] == 15 + 1 + 2


def test_passes_apart_have_a_largest_load_each() -> None:
    nodes = [
        {"name": "f", "accelerator_s": 5, "transfer_s": 1, "colour": 0},
        {"name": "g", "accelerator_s": 2, "transfer_s": 1, "colour": 1},
        {"name": "b", "accelerator_s": 3, "transfer_s": 0.5, "colour": 1, "backward": True},
        {"name": "c", "accelerator_s": 9, "transfer_s": 4, "colour": 0, "backward": True},
    ]
    fields = {"nodes": nodes, "edges": [(0, 1), (1, 2), (2, 3)], "processors": 0, "memory_bytes": 1}
    # Forward: f + its output, g + that; backward: b's output beside b and beside c.
    assert checked(diamond(**fields, separate_passes=True), 0, 1, 1, 0).objective == (5 + 1) + (9 + 0.5)
    assert checked(diamond(**fields), 0, 1, 1, 0).objective == 5 + 1 + 9 + 0.5


def test_contiguous_devices_have_an_order() -> None:
    instance = diamond(contiguous=True)
    assert checked(instance, 0, 0, 1, 1).feasible
    assert kinds(checked(instance, 0, 1, 1, 0)) == ["each device is visited once"]
    # Convex each, but each waits for the other.
    crossed = diamond(contiguous=True, edges=[(0, 1), (2, 3)])
    (found,) = checked(crossed, 0, 1, 1, 0).violations
    assert (found.kind, found.lhs, found.rhs) == ("each device is visited once", 2, 0)  # devices in the circle


def test_colours_without_forward_nodes_stand_where_their_backward_edges_put_them() -> None:
    nodes = [
        {"name": "f", "accelerator_s": 1, "colour": 0},
        {"name": "g", "accelerator_s": 1, "colour": 1},
        {"name": "gb", "accelerator_s": 1, "colour": 1, "backward": True},
        {"name": "lone", "accelerator_s": 1, "backward": True},
        {"name": "fb", "accelerator_s": 1, "colour": 0, "backward": True},
    ]
    edges = [(0, 1), (1, 2), (2, 3), (3, 4)]
    instance = diamond(nodes=nodes, edges=edges, contiguous=True, accelerators=3, processors=0, memory_bytes=1)
    assert checked(instance, 0, 2, 2, 1, 0).feasible
    # gb -> lone -> fb, reversed: f before lone before g; g is on the first device again.
    instance = diamond(nodes=nodes, edges=[*edges, (3, 4)], contiguous=True, processors=0, memory_bytes=1)
    assert kinds(checked(instance, 0, 0, 0, 1, 0)) == ["each device is visited once"]


def test_latency_is_that_of_sets_which_start_when_all_is_there() -> None:
    instance = diamond(goal="latency")
    # a (0..40) on a processor; b, c on accelerator 0 as one: 3 + 11 + 3 after 40; d on 1: 3 + 7 after 57.
    found = checked(instance, 2, 0, 0, 1)
    assert found.objective == 40 + 17 + 10
    # a and d wait for b, which waits for a.
    broken = checked(instance, 0, 2, 0, 0)
    assert broken.objective is None
    assert kinds(broken) == ["sets that run as one do not wait for each other"]
    # On processors b and c run beside each other.
    assert checked(instance, 2, 2, 2, 2).objective == 40 + 60 + 70


def test_several_subgraphs_of_an_accelerator_follow_each_other() -> None:
    instance = diamond(goal="latency", subgraphs=2, memory_bytes=40)
    found = checked(instance, 0, 2, 2, 0, subgraphs=(0, 0, 0, 1))
    assert found.objective == (4 + 3) + 60 + (3 + 7)
    # One device is busy with c and then with b, though b could start at once.
    assert checked(instance, 2, 0, 0, 2, subgraphs=(0, 1, 0, 0)).objective == 40 + (3 + 6 + 2) + (3 + 5 + 1) + 70
    assert kinds(checked(instance, 0, 2, 2, 0, subgraphs=(0, 1, 0, 2))) == ["subgraph exists", "subgraph exists"]


@pytest.mark.parametrize(
    ("fields", "devices", "kind"),
    [
        ({}, (0, 0, 0), "every node has a device"),
        ({}, (0, 0, 0, 3), "device exists"),
        ({}, (0, 0, 0, 0), "accelerator's memory suffices"),
    ],
)
def test_violations(fields: dict[str, Any], devices: tuple[int, ...], kind: str) -> None:
    assert kinds(checked(diamond(**fields), *devices)) == [kind]


def test_colours_and_support_are_checked() -> None:
    nodes = [node.model_dump() for node in diamond().nodes]
    nodes[0]["colour"] = nodes[3]["colour"] = 5
    nodes[1]["accelerator_s"] = None
    instance = diamond(nodes=nodes)
    assert kinds(checked(instance, 0, 2, 1, 1)) == ["nodes of one colour are on one device"]
    found = checked(instance, 0, 0, 1, 0)
    assert found.objective is None
    assert kinds(found) == ["node runs on its device"]


@pytest.mark.parametrize("goal", ["throughput", "latency"])
def test_exact_arithmetic_agrees(goal: str) -> None:
    instance = diamond(goal=goal)
    one, other = checked(instance, 0, 0, 1, 1), checked(instance, 0, 0, 1, 1, exact=True)
    assert isinstance(other.objective, Fraction)
    assert float(other.objective) == one.objective
    assert {name: float(value) for name, value in other.details.items()} == pytest.approx(dict(one.details))


def test_the_family_reads_and_checks_it() -> None:
    instance = DeploymentProblem.from_json(diamond().to_json())
    assert isinstance(instance, PartitionInstance)
    assert instance == diamond()
    assert evaluate(instance, Partition(instance="diamond", devices=(0, 0, 1, 1))).feasible


def node(**fields: Any) -> dict[str, Any]:
    return {"name": "n", "accelerator_s": 1, "processor_s": 1, **fields}


@for_each(
    ("fields", "message"),
    [
        ({"edges": [(1, 0), (2, 1), (0, 2)]}, "the nodes form a cycle: a -> c -> b -> a"),
        ({"edges": [(0, 7)]}, "edges[0] names node 7, but there are 4 nodes (0..3)"),
        ({"accelerators": 0, "processors": 0}, "there must be a device"),
        ({"nodes": [node(accelerator_s=None, processor_s=None)], "edges": []}, "('n') runs nowhere"),
        ({"nodes": [node(accelerator_s=None)], "edges": [], "processors": 0}, "('n') runs nowhere"),
        (
            {"nodes": [node(processor_s=None, memory_bytes=31)], "edges": []},
            "('n') needs 31 bytes of an accelerator, which has memory_bytes 30",
        ),
        ({"nodes": [node(backward=True), node()], "edges": [(0, 1)]}, "from the backward node 'n' to the forward"),
        ({"goal": "latency", "contiguous": True}, "contiguous is set; it is for goal 'throughput'"),
        ({"goal": "latency", "nodes": [node(backward=True)], "edges": []}, "latency is that of inference"),
        ({"subgraphs": 2}, "subgraphs is 2; it is for goal 'latency'"),
        ({"memory_bytes": 0}, "memory_bytes"),
    ],
)
def test_bad_input_is_refused_in_one_line(fields: dict[str, Any], message: str) -> None:
    with one_line(InstanceError, message):
        diamond(**fields)


@pytest.mark.parametrize("fields", [{}, {"contiguous": True}, {"separate_passes": True}, {"goal": "latency"}])
def test_bounds_are_never_above_the_optimum(fields: dict[str, Any]) -> None:
    met = 0
    for instance in several(30, **fields):
        best = optimum(instance)
        try:
            bound = partition_bound(instance)
        except InfeasibleError:
            assert best is None
            continue
        if best is not None:
            assert bound <= best
            met += bound >= best - 1e-9
    assert met


def test_bounds_of_packing() -> None:
    nodes = [node(accelerator_s=time, processor_s=None) for time in (6, 6, 6, 5, 5)]
    instance = diamond(nodes=nodes, edges=[], processors=1)
    # Three of five on one of two accelerators: 5 + 5 + 6.
    assert partition_bound(instance) == pytest.approx(16)
    nodes = [node(accelerator_s=1, processor_s=10)] * 21
    # T on both accelerators and T / 10 on the processor.
    assert partition_bound(diamond(nodes=nodes, edges=[])) == pytest.approx(10)


def test_bounds_of_short_times() -> None:
    # All on one processor, or one node of which only that can run: nothing else is added.
    alone = [node(accelerator_s=None, processor_s=0.01)] * 3
    assert partition_bound(diamond(nodes=alone, edges=[], accelerators=0)) == pytest.approx(0.03)
    some = [node(accelerator_s=None, processor_s=0.01), *[node(accelerator_s=0.02, processor_s=None)] * 3]
    assert partition_bound(diamond(nodes=some, edges=[])) == pytest.approx(0.04)


def test_what_no_accelerator_can_take_is_infeasible() -> None:
    nodes = [node(processor_s=None, memory_bytes=20, colour=1)] * 2
    with pytest.raises(InfeasibleError, match=r"node 'n' and 1 more, .* 40 bytes of an accelerator, which has 30"):
        partition_bound(diamond(nodes=nodes, edges=[]))
    nodes = [node(processor_s=None, memory_bytes=21)] * 3
    with pytest.raises(InfeasibleError, match="need 63 bytes, but 2 accelerators have 30 each"):
        partition_bound(diamond(nodes=nodes, edges=[]))


def test_sums_in_another_order_make_nothing_infeasible() -> None:
    """Added up one by one these are more than 0.6."""
    nodes = [node(processor_s=None, memory_bytes=size) for size in (0.1, 0.2, 0.3)]
    instance = diamond(nodes=nodes, edges=[], accelerators=1, memory_bytes=0.6)
    found = checked(instance, 0, 0, 0)
    assert found.feasible
    assert partition_bound(instance) <= found.objective
