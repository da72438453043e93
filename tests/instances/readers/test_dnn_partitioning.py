"""Graphs and splits in the format of dnn-partitioning."""

import json
from pathlib import Path
from typing import Any

import pytest
from refusals import one_line
from shared_data import shared_data

from ddlopt.instances.readers import convert
from ddlopt.instances.readers.graphs.dnn_partitioning import read_dnn_partitioning, read_split
from ddlopt.models.deployment.partition.evaluate import evaluate_partition
from ddlopt.models.deployment.partition.instance import Partition
from ddlopt.models.errors import InstanceError, OptionError, SolutionError


def graph() -> dict[str, Any]:
    def node(number: int, **fields: Any) -> dict[str, Any]:
        times = {"cpuLatency": 12.3, "fpgaLatency": 1.1, "size": 5.0}
        return {"id": number, "supportedOnFpga": 1, "isBackwardNode": False, **times, **fields}

    return {
        "maxSizePerFPGA": 10.0,
        "maxFPGAs": 2,
        "maxCPUs": 1,
        "nodes": [
            node(7, name="in", colorClass=7),
            node(3, supportedOnFpga=False),
            node(9, isBackwardNode=1, colorClass=7),
        ],
        "edges": [
            {"sourceId": 7, "destId": 3, "cost": 0.1},
            {"sourceId": 7, "destId": 9, "cost": 0.1},
            {"sourceId": 3, "destId": 9, "cost": 0.7},
        ],
    }


def written(folder: Path, data: Any, name: str = "My_graph.json") -> Path:
    path = folder / name
    path.write_text(data if isinstance(data, str) else json.dumps(data), encoding="utf-8")
    return path


def test_a_graph_is_read_digit_by_digit(tmp_path: Path) -> None:
    path = written(tmp_path, graph())
    instance = read_dnn_partitioning(path, contiguous=True)
    assert instance == convert(path, "dnn-partitioning", contiguous=True)
    assert instance.name == "my-graph"
    first, second, third = instance.nodes
    assert (first.name, first.accelerator_s, first.processor_s, first.transfer_s) == ("in", 0.0011, 0.0123, 0.0001)
    assert (second.name, second.accelerator_s, second.colour) == ("3", None, None)
    assert (third.backward, third.colour, third.memory_bytes, third.transfer_s) == (True, 7, 5.0, 0.0)
    assert instance.edges == ((0, 1), (0, 2), (1, 2))


def test_options_replace_what_the_file_says(tmp_path: Path) -> None:
    path = written(tmp_path, graph())
    instance = read_dnn_partitioning(path, accelerators=5, processors=3, name="mine", separate_passes=True)
    assert (instance.accelerators, instance.processors, instance.name) == (5, 3, "mine")
    with pytest.raises(OptionError, match="goal"):
        read_dnn_partitioning(path, goal="speed")


def test_a_split_is_completed_by_colours(tmp_path: Path) -> None:
    path = written(tmp_path, graph())
    instance = read_dnn_partitioning(path)
    split = {"fpgas": [{"nodes": []}, {"nodes": [7]}], "cpus": [{"nodes": [3]}]}
    assert read_split(written(tmp_path, split, "split.json"), path, instance).devices == (1, 2, 1)
    with pytest.raises(SolutionError, match="node '3' is on no device"):
        read_split(written(tmp_path, {"fpgas": [{"nodes": [7]}], "cpus": []}, "split.json"), path, instance)
    with pytest.raises(SolutionError, match=r"fpgas\[0\] has node 8, which the graph has not"):
        read_split(written(tmp_path, {"fpgas": [{"nodes": [8]}], "cpus": []}, "split.json"), path, instance)
    with pytest.raises(SolutionError, match="lists fpgas and cpus"):
        read_split(written(tmp_path, {}, "split.json"), path, instance)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda data: json.dumps(data)[:-40], "cannot be read"),
        (lambda data: "[]", "expected a JSON object"),
        (lambda data: {**data, "nodes": 3}, "expected an object with a list of objects nodes"),
        (lambda data: {key: value for key, value in data.items() if key != "maxFPGAs"}, "the graph has no maxFPGAs"),
        (lambda data: {**data, "nodes": [*data["nodes"], data["nodes"][0]]}, "nodes[3] has id 7, as nodes[0]"),
        (lambda data: {**data, "nodes": [{"id": 7}]}, "edges[0] names node 3"),
        (lambda data: {**data, "nodes": [{"id": 7}], "edges": []}, "nodes[0] has no supportedOnFpga"),
        (
            lambda data: {**data, "edges": [*data["edges"], {"sourceId": 7, "destId": 3, "cost": 0.2}]},
            "edges[3] has cost 0.2, but another edge of node 7 has 0.1",
        ),
        (
            lambda data: {**data, "edges": [{"sourceId": 3, "destId": 7, "cost": 0.7}, data["edges"][0]]},
            "the nodes form a cycle",
        ),
        (lambda data: {**data, "maxCPUs": 0}, "runs nowhere"),
        (
            lambda data: {**data, "maxSizePerFPGA": 4.0, "maxCPUs": 0, "nodes": data["nodes"][:1], "edges": []},
            "('in') needs 5 bytes of an accelerator, which has memory_bytes 4",
        ),
    ],
)
def test_bad_files_are_refused_in_one_line(tmp_path: Path, change: Any, message: str) -> None:
    with one_line(InstanceError, message):
        read_dnn_partitioning(written(tmp_path, change(graph())))


def test_the_published_graph_on_one_accelerator() -> None:
    instance = read_dnn_partitioning(shared_data("dnn-partitioning/LayerGraphs_bert24_inference.json"))
    assert (len(instance.nodes), len(instance.edges), len(instance.colours)) == (32, 55, 32)
    alone = evaluate_partition(instance, Partition(instance=instance.name, devices=(0,) * 32), exact=True)
    assert f"{1e3 * float(alone.objective or 0):.3f}" == "92.406"
