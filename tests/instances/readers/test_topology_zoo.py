"""The Topology Zoo: what its files hold, GML with parallel edges and labels that recur, broken files."""

import gzip
from dataclasses import replace

import pytest
from refusals import one_line
from shared_data import shared_data

from ddlopt.instances.readers import convert
from ddlopt.instances.readers.zoo.zoo_graph import read_graph, read_zoo_file, restricted
from ddlopt.models.errors import InstanceError, OptionError

GML = """graph [
  Network "Small"
  node [ id 0 label "A" ]
  node [ id 1 label "B" ]
  node [ id 2 label "A" ]
  node [ id 3 label "" ]
  node [ id 4 label "E" ]
  edge [ source 0 target 1 LinkSpeedRaw 8000.0 ]
  edge [ source 1 target 0 LinkSpeedRaw 16000.0 ]
  edge [ source 1 target 2 ]
  edge [ source 2 target 2 LinkSpeedRaw 8.0 ]
  edge [ source 3 target 4 LinkSpeedRaw 80.0 ]
]
"""
GRAPHML = """<?xml version="1.0" encoding="utf-8"?>
<graphml xmlns="http://graphml.graphdrawing.org/xmlns">
  <key attr.name="LinkSpeedRaw" attr.type="double" for="edge" id="d1" />
  <key attr.name="label" attr.type="string" for="node" id="d0" />
  <graph edgedefault="undirected">
    <node id="0"><data key="d0">A</data></node>
    <node id="1"><data key="d0">B</data></node>
    <edge source="0" target="1"><data key="d1">8000.0</data></edge>
    <edge source="0" target="1"><data key="d1">8000.0</data></edge>
  </graph>
</graphml>
"""


@pytest.fixture
def write(tmp_path):
    def written(text, name="small.gml"):
        path = tmp_path / name
        path.write_text(text, encoding="utf-8")
        return path

    return written


@pytest.mark.parametrize(
    ("name", "nodes", "edges", "parallel"), [("Abilene", 11, 14, 0), ("Nsfnet", 13, 15, 0), ("Surfnet", 50, 68, 5)]
)
def test_gml_and_graphml_are_the_same_network(name, nodes, edges, parallel):
    one, other = (read_zoo_file(shared_data(f"zoo/{name}.{kind}")) for kind in ("gml", "graphml"))
    assert replace(one, origin="") == replace(other, origin="")
    assert one.origin.startswith(f"{name}.gml (")
    assert "of the Internet Topology Zoo (CC BY 4.0" in one.origin
    assert (len(one.graph.names), len(one.graph.edges), one.parallel) == (nodes, edges, parallel)
    assert len(one.parts) == 1


def test_parallel_edges_are_added_up_and_loops_dropped(write):
    file = read_zoo_file(write(GML))
    assert file.graph.names == ("A 0", "B", "A 2", "3", "E")
    assert file.graph.edges == ((0, 1), (1, 2), (3, 4))
    assert file.graph.bandwidths == (3000.0, None, 10.0)
    assert (file.title, file.loops, file.parallel) == ("Small", 1, 1)
    assert file.parts == ((0, 1, 2), (3, 4))


def test_graphml_with_parallel_edges(write):
    assert read_graph(write(GRAPHML, "small.graphml")) == (("A", "B"), ((0, 1),), (2000.0,))


def test_packed_files_are_read(tmp_path):
    path = tmp_path / "small.gml.gz"
    path.write_bytes(gzip.compress(GML.encode()))
    assert len(read_graph(path).names) == 5


def test_labels_that_look_like_numbered_ones_stay_apart(write):
    text = GML.replace('label "B"', 'label "A 0"')
    names = read_graph(write(text)).names
    assert len(set(names)) == 5


def test_no_bandwidths_at_all(write):
    text = "\n".join(line.split(" LinkSpeedRaw")[0] + " ]" if "LinkSpeed" in line else line for line in GML.split("\n"))
    assert read_graph(write(text)).bandwidths is None


@pytest.mark.parametrize(
    ("reader", "options"), [("topology-zoo", {"jobs": 1, "workers": 2}), ("topology-zoo-gossip", {})]
)
def test_a_licence_is_named_where_the_file_says_whose_it_is(reader, options, write):
    assert convert(write(GML, "sndlib.gml"), reader, **options).source.startswith("sndlib.gml (Small); ")
    zoo = GML.replace('Network "Small"', 'Network "Small"\n  Creator "Topology Zoo Toolset"')
    assert "small.gml (Small) of the Internet Topology Zoo (CC BY 4.0" in convert(write(zoo), reader, **options).source


def test_a_part_of_a_graph(write):
    graph = restricted(read_graph(write(GML)), (4, 3))
    assert graph == (("E", "3"), ((1, 0),), (10.0,))


def test_an_instance_has_a_host_at_each_node_of_the_largest_part(write):
    instance = convert(write(GML), "topology-zoo", jobs=1, workers=2, bandwidth_bytes_per_s=7.0)
    assert [node.name for node in instance.nodes] == [
        "host A 0", "host B", "host A 2", "switch A 0", "switch B", "switch A 2",
    ]  # fmt: skip
    assert [(link.ends, link.bandwidth_bytes_per_s) for link in instance.links] == [
        ((0, 3), 7.0), ((1, 4), 7.0), ((2, 5), 7.0), ((3, 4), 3000.0), ((4, 5), 7.0),
    ]  # fmt: skip
    assert "the largest of 2 parts" in instance.source
    assert "1 parallel edges merged, 1 loops dropped" in instance.source


def test_bandwidths_of_the_file_can_be_left_aside(write):
    instance = convert(write(GML), "topology-zoo", jobs=1, workers=2, bandwidth_bytes_per_s=7.0, speeds=False)
    assert {link.bandwidth_bytes_per_s for link in instance.links} == {7.0}


def test_jobs_depend_on_the_seed(write):
    one, same, other = (
        convert(write(GRAPHML, "s.graphml"), "topology-zoo", jobs=9, workers=1, seed=s) for s in (1, 1, 2)
    )
    assert one == same
    assert one.jobs != other.jobs


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("a.gml", "", "not valid gml"),
        ("a.gml", "graph [ node [ id 0 ", "not valid gml"),
        ("a.gml", "nonsense", "not valid gml"),
        ("a.gml", GML.replace("target 1", "target 9"), "not valid gml.*9"),
        ("a.gml", "graph [ node [ id 0 ] node [ id 1 ] ]", "has 2 nodes and no edge"),
        ("a.gml", GML.replace("8000.0", '"fast"'), "LinkSpeedRaw 'fast'; expected bits per second"),
        ("a.gml", GML.replace("8000.0", "-1"), "LinkSpeedRaw -1"),
        ("a.graphml", "<graphml>", "not valid graphml"),
        ("a.graphml", "<html></html>", "not valid graphml"),
        ("a.txt", GML, "expected a file .gml or .graphml"),
    ],
)
def test_broken_files_are_refused_in_one_line(write, name, text, message):
    with one_line(InstanceError, match=message):
        read_graph(write(text, name))


def test_a_missing_file_and_one_that_is_no_text(tmp_path):
    with pytest.raises(InstanceError, match="cannot be read: No such file"):
        read_graph(tmp_path / "none.gml")
    (tmp_path / "odd.gml").write_bytes(b"\xff\xfe\x00graph")
    with pytest.raises(InstanceError, match="cannot be read"):
        read_graph(tmp_path / "odd.gml")


def test_a_network_in_parts_is_refused_where_it_must_be_whole(write):
    with pytest.raises(InstanceError, match="in 2 parts; with largest=true, that with 3 of its 5 nodes is taken"):
        convert(write(GML), "topology-zoo", largest=False)


def test_options_out_of_range(write):
    for option, value in (("hosts", 0), ("seed", -1), ("bandwidth_bytes_per_s", 0.0), ("workers", 9), ("goal", "x")):
        with pytest.raises(OptionError, match=option):
            convert(write(GML), "topology-zoo", **{option: value})


def test_nodes_that_gossip(write):
    file = write(GML)
    instance = convert(file, "topology-zoo-gossip", goal="process")
    whole = read_zoo_file(file)
    assert instance.network.nodes == len(whole.parts[0])
    assert instance.budget == len(whole.parts[0])
    assert set(instance.network.names) <= set(whole.graph.names)
    assert (instance.family, instance.goal) == ("gossip", "process")
    with pytest.raises(OptionError, match="goal is 'fast'; use one of: averaging"):
        convert(file, "topology-zoo-gossip", goal="fast")
