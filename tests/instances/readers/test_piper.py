"""Piper's JSON: a small graph read by hand, and one line for bad input."""

import copy
import json

import pytest
from refusals import one_line

import ddlopt
from ddlopt.instances.readers import convert
from ddlopt.models.errors import InstanceError, OptionError

GIB = 1 << 30


def option(name, time, before=None, behind=None):
    sizes = {"parameterSize": 8.0, "memoryUsageA": 4.0, "memoryUsageB": 2}
    return {"id": name, "timePerSample": time, **sizes, "syncTimeFw": before or {}, "syncTimeBw": behind or {}}


GRAPH = {
    "maxDevices": 2,
    "maxMemoryPerDevice": 100.0,
    "bandwidth": 5,
    "mbsInBatch": 4,
    "nodes": [
        {"id": 7, "name": "same", "TMPCs": {"1": [option("vanilla", 3, behind={"9": 6.0})]}},
        {"id": 9, "name": "same", "TMPCs": {"2": [option("vanilla", 1)], "1": [option("vanilla", 2, {"7": 5.0})]}},
    ],
    "edges": [{"sourceId": 7, "destId": 9, "communicationCost": 1.5}],
}


def written(tmp_path, data):
    path = tmp_path / "Small_Graph.json"
    path.write_text(data if isinstance(data, str) else json.dumps(data), encoding="utf-8")
    return path


def test_a_graph_is_read(tmp_path):
    found = convert(written(tmp_path, GRAPH), "piper")
    assert found.name == "small-graph"
    assert [layer.name for layer in found.layers] == ["same 7", "same 9"]
    assert [(each.maker, each.user, each.size_bytes) for each in found.edges] == [(0, 1, 1.5)]
    assert [menu.tensor for menu in found.layers[1].menus] == [1, 2]
    (first,) = found.layers[0].menu(1)
    assert (first.time_s, first.weight_bytes, first.kept_bytes, first.fixed_bytes) == (3, 8, 4, 2)
    assert (first.gathered, first.scattered) == ((), ((1, 6.0),))
    assert found.layers[1].menu(1)[0].gathered == ((0, 5.0),)
    figures = (found.devices, found.memory_bytes, found.bandwidth_bytes_per_s, found.micro_batches)
    assert figures == (2, 100, 5, 4)
    # Two replicas of both: 5 and the all-reduce of 16 / 4 · 4 bytes, halved. Two stages: 3 + 2 · 7.5 / 5 and more.
    assert ddlopt.solve(found, gap=0).objective == (5 + 16 / 5) / 2
    other = convert(
        written(tmp_path, GRAPH), "piper", devices=1, memory_gib=2, bandwidth_gib_per_s=3, micro_batches=9, name="mine"
    )
    in_ms = convert(written(tmp_path, GRAPH), "piper", time_unit_s=0.001)
    assert in_ms.layers[0].menu(1)[0].time_s == 0.003
    figures = (other.devices, other.memory_bytes, other.bandwidth_bytes_per_s, other.micro_batches, other.name)
    assert figures == (1, 2 * GIB, 3 * GIB, 9, "mine")


def broken(change):
    data = copy.deepcopy(GRAPH)
    change(data)
    return data


BAD = {
    "no JSON": ("{", "cannot be read"),
    "no nodes": (broken(lambda data: data.pop("nodes")), "the graph has no nodes"),
    "a node that is none": (broken(lambda data: data["nodes"].append(3)), "nodes[2] is 3; expected an object"),
    "an id twice": (broken(lambda data: data["nodes"][1].update(id=7)), "nodes[1] has id 7, as nodes[0]"),
    "no menus": (broken(lambda data: data["nodes"][0].pop("TMPCs")), "nodes[0] has no TMPCs"),
    "a degree": (broken(lambda data: data["nodes"][0]["TMPCs"].update(x=[])), "degrees are whole numbers from 1 on"),
    "no list": (broken(lambda data: data["nodes"][0]["TMPCs"].update({"1": 5})), "TMPCs[1] is no list of objects"),
    "no time": (
        broken(lambda data: data["nodes"][0]["TMPCs"]["1"][0].pop("timePerSample")),
        "nodes[0].TMPCs[1][0] has no timePerSample",
    ),
    "a word": (
        broken(lambda data: data["nodes"][0]["TMPCs"]["1"][0].update(timePerSample="long")),
        "timePerSample is 'long', which is no number",
    ),
    "an edge to nobody": (broken(lambda data: data["edges"][0].update(destId=3)), "edges[0] names node 3, which there"),
    "a neighbour that is nobody": (
        broken(lambda data: data["nodes"][0]["TMPCs"]["1"][0].update(syncTimeFw={"4": 1.0})),
        "syncTimeFw names node 4, which there is not",
    ),
    "true": (broken(lambda data: data.update(maxDevices=True)), "maxDevices is True, which is no whole number"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_files_are_refused_in_a_line(case, tmp_path):
    data, told = BAD[case]
    with one_line(InstanceError, told):
        convert(written(tmp_path, data), "piper")


@pytest.mark.parametrize("options", [{"devices": 0}, {"memory_gib": 0}, {"bandwidth_gib_per_s": -1.0}])
def test_bad_options_are_refused(options, tmp_path):
    with one_line(OptionError, next(iter(options))):
        convert(written(tmp_path, GRAPH), "piper", **options)
