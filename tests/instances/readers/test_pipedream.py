"""Profiles of PipeDream."""

from pathlib import Path

import pytest
from refusals import one_line

from ddlopt.instances.readers import convert
from ddlopt.instances.readers.graphs.pipedream import read_pipedream
from ddlopt.models.errors import InstanceError, OptionError

PROFILE = """node2 -- Conv2d(3, 64, stride=(4, 4)) -- forward_compute_time=2.0, backward_compute_time=5.0, \
activation_size=1200.000, parameter_size=100.000
node1 -- Input -- forward_compute_time=0.000, backward_compute_time=0.000, activation_size=600.0, parameter_size=0.000
node3 -- Tuple -- forward_compute_time=1.0, backward_compute_time=1.0, activation_size=[100.0; 20.0], parameter_size=7.0
\tnode1 -- node2
\tnode2 -- node3
\tnode1 -- node3
"""


def written(folder: Path, text: str) -> Path:
    path = folder / "tiny" / "graph.txt"
    path.parent.mkdir(exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path


def test_a_profile_is_a_graph_with_twins(tmp_path: Path) -> None:
    path = written(tmp_path, PROFILE)
    instance = read_pipedream(path, bandwidth_bytes_per_s=100.0, processors=1, slowdown=4.0)
    assert instance == convert(path, "pipedream", bandwidth_bytes_per_s=100.0, processors=1, slowdown=4.0)
    assert instance.name == "tiny-training-k4"
    nodes = instance.nodes
    names = ["node2", "node1", "node3", "node2.backward", "node1.backward", "node3.backward"]
    assert [node.name for node in nodes] == names
    assert [node.accelerator_s for node in nodes] == [2e-3, 0, 1e-3, 5e-3, 0, 1e-3]
    assert nodes[0].processor_s == 8e-3
    assert [node.transfer_s for node in nodes] == [12, 6, 1.2, 6, 0, 18]
    assert [node.memory_bytes for node in nodes] == [1300, 600, 127, 100, 0, 7]
    assert [node.colour for node in nodes] == [0, 1, 2, 0, 1, 2]
    edges = {(nodes[one].name, nodes[other].name) for one, other in instance.edges}
    assert ("node3.backward", "node2.backward") in edges
    assert ("node2", "node2.backward") in edges
    assert len(edges) == 9


def test_stages_of_the_optimizer_are_passed_over(tmp_path: Path) -> None:
    plain = read_pipedream(written(tmp_path, PROFILE))
    lines = [
        line if line.startswith("\t") else f"{line} -- stage_id={at}" for at, line in enumerate(PROFILE.splitlines())
    ]
    assert read_pipedream(written(tmp_path, "\n".join(lines) + "\n")) == plain
    with one_line(InstanceError, "line 3: has no parameter_size; is the line whole?"):
        read_pipedream(written(tmp_path, "\n".join(lines).replace("parameter_size=7.0", "")))


def test_inference_has_no_twins(tmp_path: Path) -> None:
    path = written(tmp_path, PROFILE)
    for instance in (read_pipedream(path, training=False), read_pipedream(path, goal="latency")):
        assert len(instance.nodes) == len(instance.edges) == 3
        assert instance.name == "tiny-inference-k4"


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (PROFILE, "", "has no layers"),
        ("parameter_size=7.0", "parame", "line 3: has no parameter_size; is the line whole?"),
        ("backward_compute_time=5.0", "backward_compute_time=-5", "line 1: backward_compute_time is '-5'"),
        ("node1 -- Input", "node2 -- Input", "line 2: node2 is there twice"),
        ("\tnode2 -- node3", "\tnode2 -- node8", "an edge names node8, which has no line of its own"),
        ("\tnode2 -- node3", "\tnode2", "line 5: expected 'node -- node', got 'node2'"),
        ("node1 -- Input -- ", "node1 - ", "line 2: expected 'node -- layer -- figures'"),
        ("\tnode1 -- node3", "\tnode3 -- node1", "the nodes form a cycle"),
    ],
)
def test_bad_files_are_refused_in_one_line(tmp_path: Path, old: str, new: str, message: str) -> None:
    with one_line(InstanceError, message):
        read_pipedream(written(tmp_path, PROFILE.replace(old, new)))


def test_odd_options_are_refused(tmp_path: Path) -> None:
    path = written(tmp_path, PROFILE)
    with pytest.raises(OptionError, match="slowdown"):
        read_pipedream(path, slowdown=0.0)
    with pytest.raises(InstanceError, match="there must be a device"):
        read_pipedream(path, accelerators=0)
