"""Sweeps of all-reduces: figures that made them are found again, residuals are shown, one line for what is none."""

import tomllib

import numpy as np
import pytest
from refusals import one_line

from ddlopt.cli import run
from ddlopt.instances import convert, generate
from ddlopt.instances.clusters import load, measured, names
from ddlopt.models.errors import InstanceError, OptionError

INTRA, INTER, LATENCY = 220e9, 21e9, 6e-6


def sweep(nodes, ranks, *, gpu="NVIDIA A100-SXM4-40GB", factor=None, prefix="", noise=0.0, sizes=range(10, 31, 2)):
    """What all_reduce_perf prints of a cluster with these figures."""
    n = nodes * ranks
    lines = [
        "# nThread 1 nGpus 1 minBytes 8 maxBytes 8589934592 step: 2(factor) warmup iters: 5 iters: 20",
        "# Using devices",
    ]
    lines += [
        f"#  Rank {rank:2} Group  0 Pid {43 + rank:6} on node-{rank // ranks} device {rank % ranks:2} [0x0f] {gpu}"
        for rank in range(n)
    ]
    lines += ["#                     out-of-place                       in-place"]
    lines += ["#  size   count   type   redop    root     time   algbw   busbw #wrong     time   algbw   busbw #wrong"]
    lines += ["#   (B) (elements)                          (us)  (GB/s)  (GB/s)            (us)  (GB/s)  (GB/s)"]
    for place, size in enumerate(2**each for each in sizes):
        steps = 2 * (ranks - 1) + 2 * (nodes - 1)
        time = steps * LATENCY + size * (2 * (ranks - 1) / ranks / INTRA + 2 * (nodes - 1) / nodes / INTER)
        time = max(time, 1e-6) * (1 + noise * (-1) ** place)
        bandwidth = size / time / 1e9
        bus = bandwidth * (2 * (n - 1) / n if factor is None else factor)
        figures = f"{1e6 * time:.3f} {bandwidth:.2f} {bus:.2f} 0"
        lines.append(f"{size} {size // 4} float sum -1 {figures} {figures}")
    lines += ["# Out of bounds values : 0 OK", "# Avg bus bandwidth    : 52.9753", "#"]
    return "".join(f"{prefix}{line}\n" for line in lines)


def written(tmp_path, text):
    path = tmp_path / "sweep.txt"
    path.write_text(text, encoding="utf-8")
    return path


def test_a_run_on_one_node_gives_bandwidth_within(tmp_path):
    fit = measured(written(tmp_path, sweep(1, 8)))
    (servers,) = fit.cluster.servers
    assert (servers.count, servers.accelerators, servers.accelerator) == (1, 8, "a100")
    assert servers.intra_gigabytes_per_s == pytest.approx(220, rel=1e-2)
    assert fit.cluster.network is None
    assert np.abs(fit.residuals[0]).max() < 1e-2


def test_runs_of_several_sizes_give_both_bandwidths(tmp_path):
    fit = measured(written(tmp_path, sweep(1, 8) + sweep(2, 8) + sweep(4, 8)))
    assert fit.cluster.servers[0].count == 4
    assert fit.cluster.servers[0].intra_gigabytes_per_s == pytest.approx(220, rel=1e-2)
    assert fit.cluster.network.gigabit_per_s == pytest.approx(168, rel=1e-2)
    assert fit.cluster.network.latency_us == pytest.approx(6, rel=1e-2)


def test_a_run_on_several_nodes_takes_bandwidth_within_from_the_cluster(tmp_path):
    base = load("aws-p4d")
    base = base.model_copy(update={"servers": (base.servers[0].model_copy(update={"intra_gigabytes_per_s": 220.0}),)})
    fit = measured(written(tmp_path, sweep(4, 8)), base)
    assert fit.cluster.network.gigabit_per_s == pytest.approx(168, rel=1e-2)
    assert fit.cluster.servers[0].memory_gigabytes == 40


def test_residuals_are_those_of_the_noise(tmp_path):
    fit = measured(written(tmp_path, sweep(1, 4, noise=0.1)))
    assert 0.05 < np.abs(fit.residuals[0]).max() < 0.2
    assert "off by" in list(fit.lines())[-1]


def test_tagged_lines_are_read_alike(tmp_path):
    plain, tagged = (
        measured(written(tmp_path, sweep(2, 1, prefix=prefix))).cluster for prefix in ("", "[1,0]<stdout>:")
    )
    assert plain == tagged


@pytest.mark.parametrize("name", names())
def test_a_cluster_is_written_as_it_is_read(name, tmp_path):
    path = tmp_path / "again.toml"
    path.write_text(load(name).to_toml(), encoding="utf-8")
    assert load(path) == load(name)


def test_own_accelerators_are_written_as_they_are_read():
    data = {"name": "a", "servers": [{"count": 1, "accelerator": "h"}]}
    data |= {"accelerator": {"h": {"teraflop_per_s": 1.5, "memory_gigabytes_per_s": 900}}}
    data |= {"compression": {"dgc": {"encode_us": 1, "decode_us": 2}}}
    cluster = type(load("aws-p4d")).model_validate(data)
    assert type(cluster).model_validate(tomllib.loads(cluster.to_toml())) == cluster


def test_the_command_writes_a_cluster_for_other_commands(tmp_path, capsys):
    path, out = written(tmp_path, sweep(1, 8) + sweep(4, 8)), tmp_path / "mine.toml"
    assert run(["convert", str(path), "--from", "nccl-tests", "-o", str(out)]) == 0
    assert "all-reduce on 4 x 8 ranks" in capsys.readouterr().err
    made = generate("compression", "network", cluster=out)
    assert made.cluster.inter_bandwidth_bytes_per_s == pytest.approx(INTER, rel=1e-2)
    assert run(["convert", str(path), "--from", "nccl-tests", "--seed", "1"]) == 2


BAD = {
    "nothing": ("", "there are no results in it"),
    "something else": ("all went well\n", "there are no results in it"),
    "no ranks": (sweep(1, 2).replace("Rank", "Tank"), "it names 0 ranks"),
    "one rank": (sweep(1, 1), "it names 1 ranks"),
    "uneven": (sweep(2, 2).replace("on node-1 device  1", "on node-0 device  2"), "different numbers of ranks"),
    "all-gather": (sweep(1, 8, factor=7 / 8), "bus bandwidths are 0.875 times the algorithm's"),
    "few sizes": (sweep(1, 8, sizes=(20, 24)), "2 sizes; a line needs at least 3"),
    "wrong results": (sweep(1, 2).replace(" 0 ", " 7 ", 30), "7 results were wrong"),
    "cut": (sweep(1, 2).replace(" float sum -1 ", " float sum "), "expected size, count, type"),
    "stranger": (sweep(1, 2, gpu="Riva 128"), "it is not known what a 'Riva 128' sustains"),
}


@pytest.mark.parametrize("case", BAD)
def test_what_is_no_sweep_is_told_in_a_line(case, tmp_path):
    text, told = BAD[case]
    with one_line(InstanceError, told):
        measured(written(tmp_path, text))


def test_a_bandwidth_within_that_is_too_small_is_told(tmp_path):
    with one_line(InstanceError, "no bandwidth between nodes explains these times"):
        measured(written(tmp_path, sweep(4, 8)), "tag-testbed")
    with one_line(OptionError, "makes a cluster, no instance"):
        convert(tmp_path / "sweep.txt", "nccl-tests")
