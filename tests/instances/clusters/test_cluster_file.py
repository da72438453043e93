"""Clusters from files: the bundled ones, what they give to generators and readers, and one line for every mistake."""

import tomllib

import jsonschema
import pytest
from refusals import one_line

from ddlopt.instances import generate, schema
from ddlopt.instances.clusters import Cluster, load, names
from ddlopt.instances.clusters.units import NETWORK
from ddlopt.instances.workloads.accelerators import A100
from ddlopt.models.errors import InstanceError, OptionError, UnknownNameError

MINE = """
name = "mine"

[[servers]]
count = 4
accelerators = 2
accelerator = "h"
memory_gigabytes = 80
intra_gigabytes_per_s = 450

[network]
gigabit_per_s = 200
latency_us = 5

[optics]
degree = 2
gigabit_per_s = 100

[accelerator.h]
teraflop_per_s = 50
memory_gigabytes_per_s = 2000

[compression.dgc]
encode_us = 100
decode_us = 20
"""


def written(tmp_path, text=MINE):
    path = tmp_path / "mine.toml"
    path.write_text(text, encoding="utf-8")
    return path


@pytest.mark.parametrize("name", names())
def test_bundled_clusters_fit_the_schema_and_say_where_they_are_from(name):
    cluster = load(name)
    assert cluster.name == name
    assert cluster.source
    jsonschema.validate(cluster.model_dump(mode="json", exclude_none=True), schema("cluster-file"))


def test_three_clusters_come_along():
    known = {"aws-p4d", "aws-p5", "azure-ndv2", "dgx-h100", "gb200-nvl72", "tag-testbed", "topoopt-prototype"}
    assert known | {"tpu-v5p-slice"} == set(names())


def test_a_bundled_cluster_is_that_of_the_generators_default():
    """TopoOpt's jobs on 12 servers and TAG's test-bed have their clusters by default."""
    for family, kind in (("topology", "dlrm"), ("codesign", "job")):
        usual = generate(family, kind, servers=12, degree=4)
        told = generate(family, kind, cluster="topoopt-prototype")
        assert told.model_copy(update={"source": ""}) == usual.model_copy(update={"source": ""})
    usual, told = (generate("deployment", "network", groups=4, **more) for more in ({}, {"cluster": "tag-testbed"}))
    assert [each.times_s for each in told.operators] == [each.times_s for each in usual.operators]
    for own, other in zip(told.device_groups, usual.device_groups, strict=True):
        assert own.model_dump() == other.model_dump() | {"memory_bytes": pytest.approx(other.memory_bytes)}
    assert told.bandwidth_bytes_per_s.tolist() == usual.bandwidth_bytes_per_s.tolist()
    assert told.latency_s == usual.latency_s


def test_figures_of_a_file_reach_the_instance(tmp_path):
    path = written(tmp_path)
    made = generate("compression", "network", model="resnet50", cluster=path)
    assert made.cluster.model_dump() == {
        "nodes": 4,
        "gpus_per_node": 2,
        "intra": "nvlink",
        "intra_bandwidth_bytes_per_s": 450e9,
        "inter_bandwidth_bytes_per_s": 25e9,
        "latency_s": 5e-6,
    }
    assert "h of cluster 'mine'" in made.source
    dgc = next(option for option in made.menus[-1] if option.label == "dgc 1 % inter")
    assert (dgc.encode_s, dgc.decode_s) == (1e-4, 2e-5)
    job = generate("codesign", "job", job="resnet50", cluster=path)
    assert (job.servers, job.degree, job.link_bandwidth_bytes_per_s) == (4, 2, 12.5e9)
    assert (job.device.memory_bytes, job.device.flops_per_s, job.device.memory_bytes_per_s) == (160e9, 100e12, 4e12)
    schedule = generate("scheduling", "elastic", cluster=path)
    assert schedule.servers[0].capacity == {"gpu": 2}


def test_what_is_given_beside_a_cluster_counts_more(tmp_path):
    made = generate("compression", "network", cluster=written(tmp_path), nodes=2, accelerator="a100")
    assert made.cluster.nodes == 2
    assert A100.name in made.source


def test_accelerators_may_be_objects():
    by_word, by_object = (generate("compression", "network", accelerator=each) for each in ("a100", A100))
    assert by_word.gradients == by_object.gradients


BAD = {
    "misspelt": (
        "gigabit_per_s = 200",
        "gigabits_per_s = 200",
        r"network.gigabits_per_s: there is no such key; did you mean 'gigabit_per_s'\?",
    ),
    "missing": ("count = 4", "", r"servers\[0\].count: is missing"),
    "negative": ("count = 4", "count = -4", r"servers\[0\].count: .*greater than or equal to 1 \(it is -4\)"),
    "a word": ("count = 4", 'count = "four"', r"servers\[0\].count: .*\(it is 'four'\)"),
    "bytes for bits": (
        "gigabit_per_s = 200",
        "gigabit_per_s = 12.5",
        r"network.gigabit_per_s: 12.5 Gb/s are unusual, and 12.5 GB/s are 100 Gb/s; if it is meant so, add confirm = "
        r"\[\"network.gigabit_per_s\"\]",
    ),
    "megabits": ("gigabit_per_s = 200", "gigabit_per_s = 25000", "25000 Gb/s are beyond anything sensible"),
    "bits within": ("intra_gigabytes_per_s = 450", "intra_gigabytes_per_s = 3600", "3600 Gb/s are 450 GB/s"),
    "slower inside": (
        "intra_gigabytes_per_s = 450",
        "intra_gigabytes_per_s = 10",
        r"an accelerator has 10 GB/s inside its server and 12.5 outside, .* add confirm = "
        r"\[\"servers\[0\].intra_gigabytes_per_s\"\]",
    ),
    "slower on rails": (
        "latency_us = 5",
        "unit_servers = 2\nspine_gigabit_per_s = 400",
        r"a server has 200 Gb/s inside its unit .* and 400 outside; .* confirm = \[\"network.spine_gigabit_per_s\"\]",
    ),
    "a tier missing": ("latency_us = 5", "spine_gigabit_per_s = 100", "network.unit_servers is missing"),
    "bits of memory": ("gigabytes_per_s = 2000", "gigabytes_per_s = 4e4", r"40000 Gb/s are 5000 GB/s"),
    "stranger": ('accelerator = "h"', 'accelerator = "x"', r"is 'x'; use one of v100, .*\[accelerator.x\]"),
    "compressor": ("[compression.dgc]", "[compression.zip]", "compression.zip: use one of none, fp16"),
    "confirmed elsewhere": ('"mine"', '"mine"\nconfirm = ["optics"]', "there is no bandwidth 'optics'"),
    "no servers": ("[[servers]]", "[[server]]", r"server: there is no such key; did you mean 'servers'\?"),
    "elsewhere": ('"mine"', '"mine"\ndegree = 4', r"degree: there is no such key here; it belongs in \[optics\]"),
    "no key": (
        "latency_us = 5",
        "beauty = 5",
        "network.beauty: there is no such key; keys are: gigabit_per_s, latency_us",
    ),
    "a long word": ("count = 4", f"count = '{'4' * 999}x'", r"\(it is '4+\.\.\.4+x'\)"),
    "no TOML": ("name =", "name", "not valid TOML: .*line 2"),
}


@pytest.mark.parametrize("case", BAD)
def test_mistakes_are_told_in_a_line(case, tmp_path):
    before, after, told = BAD[case]
    assert before in MINE
    with one_line(InstanceError, match=told):
        load(written(tmp_path, MINE.replace(before, after)))


def test_an_odd_bandwidth_can_be_confirmed(tmp_path):
    text = 'confirm = ["network.gigabit_per_s"]\n' + MINE.replace("gigabit_per_s = 200", "gigabit_per_s = 12.5")
    assert load(written(tmp_path, text)).network.gigabit_per_s == 12.5


@pytest.mark.parametrize("nominal", [10, 25, 40, 56, 100, 200, 400])
def test_an_eighth_of_a_nominal_speed_is_asked_about_unless_it_is_nominal(nominal):
    assert not NETWORK.doubt(nominal)
    assert bool(NETWORK.doubt(nominal / 8)) == (nominal / 8 not in NETWORK.usual)
    assert not NETWORK.doubt(0.9 * nominal)


def test_a_cluster_must_have_what_is_needed(tmp_path):
    bare = MINE.partition("[network]")[0] + MINE[MINE.index("[accelerator") :]
    path = written(tmp_path, bare)
    with one_line(OptionError, r"has no [optics]"):
        generate("topology", "dlrm", cluster=path)
    with one_line(OptionError, r"has no [network]"):
        generate("compression", "network", cluster=path)
    with one_line(OptionError, "3 kinds of servers"):
        generate("compression", "network", cluster="tag-testbed")
    with one_line(OptionError, "'circulant' has no network and no devices"):
        generate("gossip", "circulant", cluster="aws-p4d")
    with one_line(OptionError, "set workers"):
        generate("compression", "sfb-network", cluster="aws-p4d")
    with one_line(OptionError, "has its own network"):
        generate("compression", "network", cluster="aws-p4d", cost_model="espresso")
    with one_line(UnknownNameError, "there is no cluster 'aws'"):
        generate("compression", "network", cluster="aws")
    with one_line(OptionError, "cluster is 5"):
        generate("compression", "network", cluster=5)


def test_measured_times_of_compressors_are_checked():
    with one_line(OptionError, "coding_us: a compressor is 'zip'"):
        generate("compression", "network", coding_us={"zip": [1.0, 2.0]})
    with one_line(OptionError, "it is two figures"):
        generate("compression", "network", coding_us={"dgc": [1.0]})
    with one_line(OptionError, "coding_us of dgc is -1"):
        generate("compression", "network", coding_us={"dgc": [-1.0, 2.0]})


def test_a_cluster_may_be_an_object(tmp_path):
    cluster = Cluster.model_validate(tomllib.loads(MINE))
    assert generate("topology", "vgg16", cluster=cluster).servers == 4
