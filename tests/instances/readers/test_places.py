"""Files that say where hosts are: small ones by hand, and one line for every mistake."""

import json

import pytest
from refusals import one_line

import ddlopt
from ddlopt.instances.readers import convert
from ddlopt.models.errors import InstanceError, OptionError

TREE = """\
# leaf switches below two others
SwitchName=s0 Nodes=dev[0-2] LinkSpeed=100
switchname=s1 Nodes=dev[3-4],login \\
SwitchName=s2 Nodes=other1
SwitchName=top0 Switches=s[0-1]
SwitchName=top1 Switches=s2
SwitchName=root Switches=top[0-1]
""".replace(" \\\n", "\n")
BLOCKS = "BlockName=a Nodes=n[01-04]\nBlockName=b Nodes=n[05-08]\nBlockName=c Nodes=n[09-12]\nBlockSizes=4,8\n"
YAML = """\
- topology: first
  tree:
    switches:
    - switch: leaf
      nodes: n[01-04]
- topology: second
  cluster_default: true
  block:
    block_sizes: [2, 4]
    blocks:
    - {block: a, nodes: "n[1-2]"}
    - {block: b, nodes: "n[3-5]"}
    - {block: c, nodes: "n[6-7]"}
"""
NODES = "node block rack\nn[1-4] b1 r1  # four\nn5 b1 r2\nn6 b2 r3\n"
LEVELS = ["example.com/block", "example.com/rack"]


def node(name, block, rack, **more):
    labels = {"example.com/block": block, "example.com/rack": rack, "pool": "gpu"}
    return {
        "kind": "Node",
        "metadata": {"name": name, "labels": labels},
        "status": {"allocatable": {"nvidia.com/gpu": "8"}},
        **more,
    }


def objects(levels=LEVELS, required="example.com/rack"):
    annotations = {"kueue.x-k8s.io/podset-required-topology": required}
    return [
        {
            "kind": "Topology",
            "metadata": {"name": "default"},
            "spec": {"levels": [{"nodeLabel": each} for each in levels]},
        },
        {
            "kind": "ResourceFlavor",
            "metadata": {"name": "flavor"},
            "spec": {"topologyName": "default", "nodeLabels": {"pool": "gpu"}},
        },
        {
            "kind": "List",
            "items": [
                *(node(f"n{number}", "b1", "r1") for number in range(3)),
                node("n3", "b2", "r1"),
                node("n4", "b2", "r1", spec={"unschedulable": "true"}),
                {"kind": "Node", "metadata": {"name": "n5", "labels": {"pool": "gpu"}}},
            ],
        },
        {
            "kind": "Job",
            "metadata": {"name": "one"},
            "spec": {"parallelism": "2", "template": {"metadata": {"annotations": annotations}}},
        },
        {
            "kind": "JobSet",
            "metadata": {"name": "set"},
            "spec": {"replicatedJobs": [{"name": "w", "replicas": "2", "template": {"spec": {}}}]},
        },
        {"kind": "ClusterQueue", "metadata": {"name": "queue"}},
    ]


def written(tmp_path, name, data):
    path = tmp_path / name
    text = data if isinstance(data, str) else "---\n".join(json.dumps(each) + "\n" for each in data)
    path.write_text(text, encoding="utf-8")
    return path


def leaves(instance):
    return {leaf.name: (leaf.inside, leaf.host_names) for leaf in instance.leaves}


def test_switches_are_a_tree_and_one_that_holds_all_is_no_level(tmp_path):
    found = convert(written(tmp_path, "topology.conf", TREE), "slurm-topology", gangs="2x3,1:leaf", busy="dev[0-1]")
    assert found.levels == ("level-1", "leaf")
    assert leaves(found) == {
        "s0": (("top0",), ("dev2",)),
        "s1": (("top0",), ("dev3", "dev4", "login")),
        "s2": (("top1",), ("other1",)),
    }
    assert [(gang.hosts, gang.within) for gang in found.gangs] == [(3, "any"), (3, "any"), (1, "leaf")]


def test_a_leaf_nearer_to_the_root_is_in_levels_of_its_own(tmp_path):
    text = "SwitchName=a Nodes=x1\nSwitchName=b Nodes=x2\nSwitchName=m Switches=a\nSwitchName=r Switches=m,b\n"
    found = convert(written(tmp_path, "topology.conf", text), "slurm-topology")
    assert {name: inside for name, (inside, _) in leaves(found).items()} == {"a": ("m",), "b": ("b",)}


def test_blocks_in_a_row_make_larger_ones(tmp_path):
    found = convert(written(tmp_path, "topology.conf", BLOCKS), "slurm-topology")
    assert found.levels == ("level-1", "leaf")
    assert [leaf.inside for leaf in found.leaves] == [("blocks-2-0",), ("blocks-2-0",), ("blocks-2-1",)]
    assert found.leaves[0].host_names == ("n01", "n02", "n03", "n04")


def test_one_of_several_topologies_in_yaml(tmp_path):
    path = written(tmp_path, "topology.yaml", YAML)
    assert [leaf.hosts for leaf in convert(path, "slurm-topology").leaves] == [2, 3, 2]
    assert [leaf.hosts for leaf in convert(path, "slurm-topology", topology="first").leaves] == [4]


def test_objects_of_kueue(tmp_path):
    path = written(tmp_path, "cluster.yaml", objects())
    found = convert(path, "kueue-objects")
    assert found.levels == tuple(LEVELS)
    assert leaves(found) == {"b1/r1": (("b1",), ("n0", "n1", "n2")), "b2/r1": (("b2",), ("n3",))}
    assert [(gang.name, gang.hosts, gang.within) for gang in found.gangs] == [
        ("one", 2, "example.com/rack"), ("set/w", 2, "any"),
    ]  # fmt: skip
    assert "left out are 2 nodes and 1 objects of other kinds" in found.source
    assert ddlopt.solve(found, gap=0).objective == 3
    slots = convert(path, "kueue-objects", resource="nvidia.com/gpu", pod=4, gangs="6:rack")
    assert [leaf.hosts for leaf in slots.leaves] == [6, 2]


def test_hosts_are_leaves_where_the_innermost_level_is_the_hostname(tmp_path):
    levels = [*LEVELS, "kubernetes.io/hostname"]
    found = convert(written(tmp_path, "c.yaml", objects(levels)), "kueue-objects", resource="nvidia.com/gpu")
    assert leaves(found)["n3"] == (("b2", "b2/r1"), tuple(f"n3.{slot}" for slot in range(8)))


def test_a_list_of_nodes(tmp_path):
    found = convert(written(tmp_path, "nodes.txt", NODES), "node-list", gangs="5,1")
    assert [(leaf.name, leaf.inside, leaf.hosts) for leaf in found.leaves] == [
        ("r1", ("b1",), 4), ("r2", ("b1",), 1), ("r3", ("b2",), 1),
    ]  # fmt: skip
    plain = convert(written(tmp_path, "nodes.csv", "node\na\nb\n"), "node-list", gangs="2")
    assert (plain.levels, plain.leaves[0].host_names) == (("cluster",), ("a", "b"))


@pytest.mark.parametrize("gangs", ["2", 2])
def test_one_gang_may_be_a_number_as_the_command_line_reads_it(tmp_path, gangs):
    found = convert(written(tmp_path, "nodes.csv", "node\na\nb\n"), "node-list", gangs=gangs)
    assert [gang.hosts for gang in found.gangs] == [2]
    with pytest.raises(OptionError, match="gangs has '-2'"):
        convert(written(tmp_path, "nodes.csv", "node\na\nb\n"), "node-list", gangs=-2)


def test_numbers_of_hosts_by_rack(tmp_path):
    data = {"blocks": [[4, 3], [2]], "gangs": [{"hosts": 5, "within": "block"}, {"hosts": 2}], "objective": "crossings"}
    found = convert(written(tmp_path, "racks.json", json.dumps(data)), "racks")
    assert [(leaf.name, leaf.hosts) for leaf in found.leaves] == [("b0-r0", 4), ("b0-r1", 3), ("b1-r0", 2)]
    assert ddlopt.solve(found, gap=0).objective == 2


@pytest.mark.parametrize(
    ("name", "text", "options", "words"),
    [
        ("topology.conf", "", {}, "names no switch and no block"),
        ("topology.conf", "SwitchName=a Nodes=x Colour=red\n", {}, "line 1: 'colour' is none of SwitchName"),
        ("topology.conf", "nonsense\n", {}, "line 1: 'nonsense' is none of"),
        ("topology.conf", "Nodes=x\n", {}, "line 1: has neither SwitchName nor BlockName"),
        ("topology.conf", "SwitchName=a\n", {}, "'a' needs either nodes or switches"),
        ("topology.conf", "SwitchName=a Nodes=x[2-1]\n", {}, "line 1: '[2-1]' goes from 2 down to 1"),
        ("topology.conf", "SwitchName=a Nodes=x[a]\n", {}, "line 1: '[a]' is no range"),
        ("topology.conf", "SwitchName=a Nodes=x[1\n", {}, "line 1: 'x[1' is no list of hosts"),
        ("topology.conf", "SwitchName=a Nodes=x[0-99999999]\n", {}, "names more than 1000000 hosts"),
        ("topology.conf", "SwitchName=a Nodes=x\nSwitchName=a Nodes=y\n", {}, "line 2: 'a' is there already"),
        ("topology.conf", "SwitchName=a Nodes=x\nSwitchName=b Nodes=x\n", {}, "host 'x' is in leaf 'a' and in 'b'"),
        ("topology.conf", "SwitchName=a Nodes=x\nSwitchName=b Switches=c\n", {}, "line 2: there is no switch 'c'"),
        ("topology.conf", TREE + "SwitchName=more Switches=s0\n", {}, "line 8: levels do not nest: 's0' is below"),
        ("topology.conf", "SwitchName=a Switches=b\nSwitchName=b Switches=a\n", {}, "levels do not nest"),
        ("topology.conf", BLOCKS.replace("4,8", "4,12"), {}, "levels do not nest: block size 12"),
        ("topology.conf", BLOCKS.replace("4,8", "5"), {}, "'a' has 4 nodes, and block sizes begin at 5"),
        ("topology.conf", BLOCKS.replace("4,8", "four"), {}, "a block size is 'four'"),
        ("topology.conf", BLOCKS, {"gangs": "3y4"}, "gangs has '3y4'"),
        ("topology.conf", BLOCKS, {"gangs": "4:pod"}, "there is no level 'pod'; levels are: level-1, leaf"),
        ("topology.conf", BLOCKS, {"gangs": "13"}, "fits nowhere"),
        ("topology.conf", BLOCKS, {"busy": "n13"}, "busy names host 'n13'"),
        ("topology.conf", BLOCKS, {"topology": "x"}, "a topology.conf has one"),
        ("topology.yaml", YAML, {"topology": "third"}, "topology.yaml has: first, second"),
        ("topology.yaml", "- a: [\n", {}, "no YAML that is read here"),
        ("topology.yaml", "a: &x [1]\nb: *x\n", {}, "line 2: no YAML that is read here: aliases are not read"),
        ("topology.yaml", "a: 1\na: 2\n", {}, "'a' is there twice"),
        ("topology.yaml", "[" * 5000, {}, "is nested too deeply"),
        ("topology.yaml", "- tree: {}\n", {}, "expected a list of topologies"),
        ("topology.yaml", "- {topology: t, flat: true}\n", {}, "has neither a tree nor blocks"),
        ("topology.yaml", "- {topology: t, tree: {}}\n", {}, "tree has no list of switches"),
        ("topology.yaml", "- {topology: t, tree: {switches: [{nodes: a}]}}\n", {}, "switches[0]: has no name"),
        ("topology.yaml", "- {topology: t, tree: {switches: [{switch: s, nodes: [a]}]}}\n", {}, "are texts"),
    ],
)  # fmt: skip
def test_what_is_wrong_with_a_topology_is_said_in_a_line(tmp_path, name, text, options, words):
    with one_line((InstanceError, OptionError), words):
        convert(written(tmp_path, name, text), "slurm-topology", **options)


def changed(place, **more):
    found = objects()
    return [each | more if number == place else each for number, each in enumerate(found)]


SECOND = objects()[1] | {"metadata": {"name": "second"}}
ODD_NODE = node("n0", "b1", "r1", status={"allocatable": {"gpu": "2Ki"}})


@pytest.mark.parametrize(
    ("data", "options", "words"),
    [
        ("just text\n", {}, "is no object of Kubernetes"),
        (changed(0, metadata={}), {}, "document 1: Topology has no metadata.name"),
        (changed(0, spec={"levels": []}), {}, "needs spec.levels"),
        (changed(0, kind="Other"), {}, "has no Topology 'default'"),
        (objects(), {"flavor": "none"}, "has no ResourceFlavor 'none'; there are: flavor"),
        ([*objects(), SECOND], {}, "several of kind ResourceFlavor; say which with flavor"),
        (objects(["pod"]), {}, "no node has all labels of the topology: pod"),
        (objects(required="pod"), {}, "'one' requires level 'pod'"),
        (changed(3, spec={"parallelism": "many"}), {}, "'one' has 'many' pods"),
        (changed(4, spec={"replicatedJobs": 3}), {}, "spec.replicatedJobs of 'set' is no list"),
        (objects()[:3], {}, "has no Job, JobSet or Workload with pods; give gangs"),
        (objects(), {"gangs": "3", "pod": 0}, "pod is 0"),
        (changed(2, items=[ODD_NODE]), {"resource": "gpu"}, "node 'n0' has '2Ki' of gpu"),
        (objects(), {"gangs": "5"}, "fits nowhere"),
    ],
)  # fmt: skip
def test_what_is_wrong_with_objects_is_said_in_a_line(tmp_path, data, options, words):
    with one_line((InstanceError, OptionError), words):
        convert(written(tmp_path, "objects.yaml", data), "kueue-objects", **options)


@pytest.mark.parametrize(
    ("text", "options", "words"),
    [
        ("", {}, "has no lines"),
        ("node block\n", {}, "has no nodes"),
        ("host block\na b\n", {}, "columns are 'host block'"),
        ("node rack\na\n", {}, "line 2: 'a' has 1 columns, and the first line 2"),
        (NODES + "n7 b2 r1\n", {}, "line 5: levels do not nest: rack 'r1' is in block 'b2' here and in 'b1' before"),
        (NODES + "n4 b2 r3\n", {}, "line 5: node 'n4' is there already, in line 2"),
        (NODES, {"gangs": "7"}, "fits nowhere: it needs 7 hosts, and all leaves together have 6 free"),
        (NODES, {"objective": "cost"}, "objective"),
    ],
)
def test_what_is_wrong_with_a_list_of_nodes_is_said_in_a_line(tmp_path, text, options, words):
    with one_line((InstanceError, OptionError), words):
        convert(written(tmp_path, "nodes.txt", text), "node-list", **options)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"racks": []}, "'racks' is unknown"),
        ({"blocks": 3}, "blocks is no list"),
        ({"blocks": [3]}, "blocks[0] is no list"),
        ({"gangs": [3]}, "gangs[0] is no object with hosts"),
        ({"gangs": [{"hosts": 9, "within": "rack"}]}, "gangs[0] ('g0') fits nowhere"),
        ({"gangs": [{"hosts": 1, "within": "row"}]}, "within is 'row'"),
        ({"blocks": [[-1]]}, "hosts"),
    ],
)
def test_what_is_wrong_with_racks_is_said_in_a_line(tmp_path, changes, words):
    data = {"blocks": [[4, 3]], "gangs": [{"hosts": 5}], "objective": "pairs"} | changes
    with one_line(InstanceError, words):
        convert(written(tmp_path, "racks.json", json.dumps(data)), "racks")
