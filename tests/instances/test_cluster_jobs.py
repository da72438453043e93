"""Jobs of a cluster from files: what they make, and every mistake in a line."""

import itertools
import json

import pytest
from refusals import one_line

import ddlopt
from ddlopt.cli import run
from ddlopt.instances.generators.cluster import generate
from ddlopt.instances.generators.cluster.joint import of_topoopt, share_of_batch
from ddlopt.instances.readers import convert
from ddlopt.models.errors import DdloptError, OptionError

CLUSTER = """
name = "mine"
servers = [{ count = 8, accelerators = 2, accelerator = "a100", memory_gigabytes = 80, intra_gigabytes_per_s = 300 }]
network = { gigabit_per_s = 200 }
optics = { degree = 4, gigabit_per_s = 100 }
"""
CONFIG = {
    "model_type": "llama", "num_hidden_layers": 2, "hidden_size": 256, "num_attention_heads": 4,
    "num_key_value_heads": 4, "intermediate_size": 512, "vocab_size": 1000, "max_position_embeddings": 256,
}  # fmt: skip
CHAT = {"name": "chat", "config": "small.json", "sequence": 256, "global_batch": 16, "tokens": 1e6}
IMAGES = {"name": "images", "workload": "vgg16", "servers": [2, 4], "iterations": 5}
TOLD = {"name": "told", "step_s": {"1": 2.0, "3": 1.0}, "iterations": 7, "arrival_s": 9}


@pytest.fixture
def files(tmp_path):
    def write(*jobs, **others):
        (tmp_path / "small.json").write_text(json.dumps(CONFIG), encoding="utf-8")
        (tmp_path / "mine.toml").write_text(CLUSTER, encoding="utf-8")
        (tmp_path / "jobs.json").write_text(json.dumps({"jobs": jobs, **others}), encoding="utf-8")
        return tmp_path / "jobs.json", tmp_path / "mine.toml"

    return write


def test_jobs_of_files(files):
    jobs, cluster = files(CHAT, IMAGES, TOLD, CHAT | {"name": "again", "weight": 2}, objective="weighted_completion")
    made = convert(jobs, "cluster-jobs", cluster=str(cluster))
    assert (made.servers, made.objective) == (8, "weighted_completion")
    assert [job.workload for job in made.jobs] == [0, 1, 2, 0]
    assert [[choice.servers for choice in each.choices] for each in made.workloads] == [[1, 2, 4, 8], [2, 4], [1, 3]]
    assert [choice.devices for choice in made.workloads[0].choices] == [2, 4, 8, 16]
    assert made.jobs[0].iterations == 245  # tokens over 16 samples of 256, rounded up
    assert [problem.family for problem in made.problems] == ["deployment", "codesign", "codesign"]


def test_compressors_of_a_job_are_options_of_its_layers(files):
    lossy = IMAGES | {"name": "lossy", "compressors": ["fp16", "random_k:0.1"], "error_budget": 0.25}
    jobs, cluster = files(IMAGES, lossy, lossy | {"name": "more", "error_budget": 0.5})
    made = convert(jobs, "cluster-jobs", cluster=str(cluster))
    assert [job.workload for job in made.jobs] == [0, 1, 2]
    assert [problem.error_budget for problem in made.problems] == [None, None, 0.25, 0.25, 0.5, 0.5]
    names = [{each.name for layer in problem.layers for each in layer.strategies} for problem in made.problems]
    assert {"data+fp16", "data+random_k:0.1"} <= names[2]
    assert not any("+" in name for name in names[0])


FABRIC = "fabric = { hosts_per_rack = 2, oversubscription = 4 }\n"


def with_fabric(cluster, text=FABRIC):
    cluster.write_text(CLUSTER + text, encoding="utf-8")
    return str(cluster)


def test_a_fabric_and_what_jobs_send_over_it(files, tmp_path):
    jobs, cluster = files(CHAT, IMAGES, TOLD, TOLD | {"name": "more", "gradient_bytes": 6e9}, CHAT | {"name": "again"})
    made = convert(jobs, "cluster-jobs", cluster=with_fabric(cluster))
    assert [group.hosts for group in made.fabric.groups] == [2, 2, 2, 2]
    # Two hosts of 200 Gb/s over four.
    assert {group.uplink_bytes_per_s for group in made.fabric.groups} == {12.5e9}
    assert [job.workload for job in made.jobs] == [0, 1, 2, 3, 0]
    sent = [[choice.crossing_bytes for choice in each.choices] for each in made.workloads]
    step = made.problems[0]
    parameters = 2 * 1000 * 256 + 2 * (4 * 256 * 256 + 3 * 256 * 512)  # embedding, head, two blocks
    assert sent[0] == pytest.approx(
        [2 * step.gradient_bytes * parameters * (w - 1) / w for w in (1, 2, 4, 8)], rel=0.01
    )
    assert sent[1] == pytest.approx([553430176.0, 1.5 * 553430176.0])  # VGG-16 has 138 million parameters
    assert sent[2:] == [[0.0, 0.0], [0.0, 8e9]]
    plain = convert(jobs, "cluster-jobs", cluster=with_fabric(cluster, ""))
    assert plain.fabric is None
    assert made.changed(fabric=None, workloads=plain.workloads, jobs=plain.jobs).problems == plain.problems


def test_blocks_of_racks(files):
    jobs, cluster = files(TOLD)
    text = "fabric = { hosts_per_rack = 2, racks = 4, uplink_gigabit_per_s = 80, racks_per_block = 2"
    for more, uplink in ((", block_oversubscription = 2 }", 10e9), (", block_uplink_gigabit_per_s = 8 }", 1e9)):
        made = convert(jobs, "cluster-jobs", cluster=with_fabric(cluster, text + more))
        assert [(group.name, group.inside) for group in made.fabric.groups[1:4]] == [
            ("block1", None), ("rack0", 0), ("rack1", 0)]  # fmt: skip
        assert [group.uplink_bytes_per_s for group in made.fabric.groups] == [uplink] * 2 + [10e9] * 4


@pytest.mark.parametrize(
    ("told", "words"),
    [
        ("hosts_per_rack = 3, oversubscription = 4", "does not nest: there are 8 servers, which are not racks of 3"),
        ("hosts_per_rack = 4, racks = 3, oversubscription = 4", "8 servers, which are not 3 racks of 4 hosts"),
        ("hosts_per_rack = 2, oversubscription = 4, racks_per_block = 3, block_oversubscription = 1",
         "does not nest: there are 4 racks, which are not blocks of 3"),
        ("hosts_per_rack = 2", "give either uplink_gigabit_per_s or oversubscription"),
        ("hosts_per_rack = 2, oversubscription = 4, uplink_gigabit_per_s = 1", "give either uplink_gigabit_per_s"),
        ("hosts_per_rack = 2, uplink_gigabit_per_s = 0", "uplink_gigabit_per_s: input should be greater than 0"),
        ("hosts_per_rack = 0, oversubscription = 4", "hosts_per_rack: input should be greater than or equal to 1"),
        ("hosts_per_rack = 2, oversubscription = 4, block_oversubscription = 1", "needs racks_per_block"),
        ("hosts_per_rack = 2, oversubscription = 4, racks_per_block = 2", "give either block_uplink_gigabit_per_s"),
        ("hosts_per_rak = 2, oversubscription = 4", "did you mean 'hosts_per_rack'?"),
        ("oversubscription = 4", "fabric.hosts_per_rack: is missing"),
    ],
)  # fmt: skip
def test_a_fabric_that_makes_no_sense_is_a_line(files, told, words):
    jobs, cluster = files(TOLD)
    with pytest.raises(DdloptError) as error:
        convert(jobs, "cluster-jobs", cluster=with_fabric(cluster, f"fabric = {{ {told} }}\n"))
    one_line(error.value, words)


def test_a_script_names_the_hosts_of_each_job(files, tmp_path):
    wide = {"name": "wide", "step_s": {"3": 1.0}, "iterations": 10, "gradient_bytes": 1e9}
    jobs, cluster = files(wide, wide | {"name": "other"}, wide | {"name": "third", "arrival_s": 1})
    made = convert(jobs, "cluster-jobs", cluster=with_fabric(cluster))
    found = ddlopt.solve(made, time_limit=2)
    assert found.checked
    script = tmp_path / "run.sh"
    (tmp_path / "c.json").write_text(made.to_json(), encoding="utf-8")
    (tmp_path / "plan.json").write_text(found.solution.to_json(), encoding="utf-8")
    told = [str(tmp_path / name) for name in ("c.json", "plan.json")]
    assert run(["export-plan", *told, "--to", "cluster-script", "-o", str(script)]) == 0
    text = script.read_text()
    hosts = [line.removeprefix("HOSTS=").strip("'").split() for line in text.splitlines() if line.startswith("HOSTS=")]
    assert [len(each) for each in hosts] == [3, 3, 3]
    assert {name.rpartition("-")[0] for each in hosts for name in each} <= {f"rack{k}" for k in range(4)}
    starts = [float(line.removeprefix("START_S=")) for line in text.splitlines() if line.startswith("START_S=")]
    for one, other in itertools.combinations(range(3), 2):
        assert set(hosts[one]).isdisjoint(hosts[other]) or abs(starts[one] - starts[other]) >= 10 - 1e-6
    assert len({name for each in hosts for name in each}) > 3
    assert run(["export-plan", *told, "--to", "table"]) == 0


def test_the_command_takes_files(files, capsys):
    jobs, cluster = files(TOLD)
    assert run(["generate", "cluster", "--jobs", str(jobs), "--cluster", str(cluster)]) == 0
    assert json.loads(capsys.readouterr().out)["problem"] == "joint"
    assert run(["generate", "cluster", "--kind", "jobs", "--jobs", "two"]) == 2
    assert run(["generate", "cluster", "--jobs", str(jobs)]) == 2
    assert "cluster" in capsys.readouterr().err


def test_drawn_jobs_in_racks():
    options = {"servers": 6, "jobs": 3, "workloads": ("tiny-step",), "widths": (2, 3)}
    apart = generate("joint", 3, **options)
    shared = generate("joint", 3, **options, rack=2, uplink_gigabit_per_s=16.0)
    assert shared.jobs == apart.jobs
    assert [(group.hosts, group.uplink_bytes_per_s) for group in shared.fabric.groups] == [(2, 2e9)] * 3
    problem = shared.problems[0]
    blocks = (problem.embedding, *problem.blocks, problem.head)
    parameters = sum(block.count * next(way.parameters for way in block.ways if way.tensor == 1) for block in blocks)
    gradients = problem.gradient_bytes * parameters
    sent = [choice.crossing_bytes for choice in shared.workloads[0].choices]
    assert sent == pytest.approx([gradients, 4 / 3 * gradients])


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"rack": 3}, "rack and uplink_gigabit_per_s are given together, or neither is"),
        ({"rack": 3, "uplink_gigabit_per_s": 1.0}, "rack is 3, and 8 servers are no multiple of it"),
        ({"rack": 0, "uplink_gigabit_per_s": 1.0}, "rack is 0; it must be at least 1"),
        ({"rack": 2, "uplink_gigabit_per_s": 0.0}, "uplink_gigabit_per_s is 0.0; it must be positive and finite"),
        ({"widths": "3,4"}, "widths is '3,4'; it must be a list such as [1, 2], each a whole number"),
    ],
)
def test_racks_that_cannot_be(options, words):
    with pytest.raises(OptionError) as told:
        generate("joint", 0, **options)
    assert words in str(told.value)


@pytest.mark.parametrize(
    ("job", "words"),
    [
        (CHAT | {"config": "gone.json"}, "there is no file"),
        (IMAGES | {"workload": "vgg61"}, "there is no workload 'vgg61'"),
        (IMAGES | {"servers": [2, 16]}, "may have 16 servers, and cluster 'mine' has 8"),
        (IMAGES | {"servers": [1]}, "links are laid between at least 2"),
        (IMAGES | {"servers": [0, 2]}, "a job needs at least one"),
        (IMAGES | {"error_budget": -0.1}, "error_budget: input should be greater than or equal to 0"),
        (IMAGES | {"compressors": ["fp17"]}, "compressor is 'fp17'; use one of"),
        (IMAGES | {"compressors": ["sign"]}, "compressors has 'sign'; rings of layers take: fp16, random_k:RATIO"),
        (CHAT | {"compressors": ["fp16"]}, "compressors and error_budget are for a workload or a file of ONNX"),
        (TOLD | {"deadline_s": 8}, "its deadline, 8 s, is before its arrival, 9 s"),
        (TOLD | {"workload": "vgg16"}, "has workload and step_s"),
        ({"name": "none", "iterations": 1}, "has nothing to train"),
        (TOLD | {"step_s": {"many": 1}}, "they are numbers of servers"),
        (TOLD | {"tokens": 5}, "give either iterations or tokens"),
        (IMAGES | {"iterations": None, "tokens": 5}, "tokens need config"),
        (TOLD | {"iteration": 5}, "did you mean 'iterations'?"),
        (TOLD | {"iterations": -1}, "iterations: input should be greater than 0"),
    ],
)
def test_bad_jobs_are_a_line(files, job, words):
    jobs, cluster = files(job)
    with pytest.raises(DdloptError) as error:
        convert(jobs, "cluster-jobs", cluster=str(cluster))
    one_line(error.value, words)


def test_bad_files_are_a_line(files, tmp_path):
    jobs, cluster = files(TOLD, colour=1)
    for text, words in ((None, "no such key 'colour'"), ("{", "not valid JSON"), ('{"jobs": []}', "there are no jobs")):
        if text is not None:
            jobs.write_text(text, encoding="utf-8")
        with pytest.raises(DdloptError) as error:
            convert(jobs, "cluster-jobs", cluster=str(cluster))
        one_line(error.value, words)
    with pytest.raises(DdloptError) as error:
        convert(tmp_path / "gone.toml", "cluster-jobs", cluster=str(cluster))
    one_line(error.value, "cannot be read")


def test_an_iteration_has_the_same_samples_on_any_number_of_servers():
    """The same network, and on twice as many servers each has half of the work."""
    few, many = (of_topoopt("bert", width, 2, degree=1) for width in (2, 4))
    assert [layer.name for layer in few.layers] == [layer.name for layer in many.layers]
    for one, other in zip(few.layers, many.layers, strict=True):
        assert one.strategies[0].name == other.strategies[0].name == "data"
        assert one.strategies[0].flops == pytest.approx(2 * other.strategies[0].flops)
    assert [share_of_batch(16, 2, width) for width in (2, 3, 8, 64)] == [16, 11, 4, 1]
