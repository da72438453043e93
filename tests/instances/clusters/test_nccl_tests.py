"""Sweeps of all-reduces: figures that made them are found again, residuals are shown, one line for what is none."""

import re
import tomllib

import numpy as np
import pytest
from refusals import one_line

from ddlopt.cli import run
from ddlopt.instances import convert, generate
from ddlopt.instances.clusters import load, measured, names
from ddlopt.models.errors import InstanceError, OptionError

INTRA, INTER, LATENCY = 220e9, 21e9, 6e-6


def sweep(
    nodes,
    ranks,
    *,
    gpu="NVIDIA A100-SXM4-40GB",
    factor=None,
    prefix="",
    noise=0.0,
    sizes=range(10, 31, 2),
    inter=INTER,
    overlap=False,
    protocol_s=0.0,
    program="",
    how="sum -1",
):
    """What all_reduce_perf prints of a cluster with these figures."""
    n = nodes * ranks
    lines = [
        *([f"# Collective test starting: {program}"] if program else []),
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
        phases = size * 2 * (ranks - 1) / ranks / INTRA, size * 2 * (nodes - 1) / nodes / inter
        time = steps * LATENCY + (max if overlap else sum)(phases) + (protocol_s if size > 2**18 else 0)
        time = max(time, 1e-6) * (1 + noise * (-1) ** place)
        bandwidth = size / time / 1e9
        bus = bandwidth * (2 * (n - 1) / n if factor is None else factor)
        figures = f"{1e6 * time:.3f} {bandwidth:.2f} {bus:.2f} 0"
        lines.append(f"{size} {size // 4} float {how} {figures} {figures}")
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


LABELS = {
    "Open MPI 4": "[1,0]<stdout>:",
    "PRRTE": "[prterun-node-7@1,0]<stdout>: ",
    "srun": " 0: ",
    "Hydra": "[0] ",
    "SageMaker": "[1,mpirank:0,algo-1]<stdout>:",
    "kubectl": "[pod/sweep-launcher-x7k2q/launcher] ",
    "kubectl's times": "2026-03-10T07:15:02.123456789Z ",
    "docker": "worker-1  | ",
    "pdsh": "node0: ",
    "a time of day": "2026-03-10 07:15:02 ",
    "a time and a label": "Mar 10 07:15:02 node0 0: ",
}


@pytest.mark.parametrize("label", LABELS)
def test_labels_and_times_before_lines_are_passed_over(label, tmp_path):
    plain = measured(written(tmp_path, sweep(1, 4) + sweep(2, 4))).cluster
    # Two runs, of which one has labels.
    labelled = sweep(1, 4) + sweep(2, 4, prefix=LABELS[label])
    assert measured(written(tmp_path, labelled)).cluster == plain
    assert measured(written(tmp_path, labelled.replace("#", ""))).cluster == plain


def test_times_of_day_behind_results_are_passed_over(tmp_path):
    lines = sweep(2, 4).splitlines()
    timed = [
        f"{line}            timestamp"
        if "busbw" in line
        else f"{line}  2026-03-10 07:15:02"
        if line[0] != "#"
        else line
        for line in lines
    ]
    plain = measured(written(tmp_path, sweep(2, 4))).cluster
    assert measured(written(tmp_path, "\n".join(timed) + "\n")).cluster == plain
    with one_line(InstanceError, "expected size, count, type"):
        measured(written(tmp_path, "\n".join(timed).replace(" 0  2026-03-10 07:15:02", "", 1)))


def test_phases_that_overlap_leave_a_bandwidth_open(tmp_path):
    """Both phases take the same: what the sum of phases leaves to the network is next to nothing."""
    text = sweep(2, 8, inter=200e9, overlap=True)
    alone = measured(written(tmp_path, text))
    least = 2 * (1 / 2) / (2 * (7 / 8) / INTRA) / 125e6
    assert alone.cluster.network.gigabit_per_s == pytest.approx(least, rel=1e-2)
    assert alone.cluster.servers[0].intra_gigabytes_per_s == pytest.approx(220, rel=1e-2)
    assert "which do not tell the bandwidth between nodes" in alone.cluster.source
    said = " ".join(alone.lines())
    assert "intra_gigabytes_per_s = 220 is the least that explains the times, as 150 does not" in said
    assert "the least that explains the times is taken" in said
    assert np.abs(alone.residuals[0]).max() < 1e-2


@pytest.mark.parametrize("intra", [220.0, 221.0, 250.0, 300.0])
def test_no_more_is_written_than_the_data_sheet_without_a_word(intra, tmp_path):
    path = written(tmp_path, sweep(2, 8, inter=200e9, overlap=True))
    fit = measured(path, with_figures(intra, 1600.0))
    assert fit.cluster.network.gigabit_per_s == 1600
    assert "gigabit_per_s = 1600: the cluster's is kept; it is at least" in " ".join(fit.lines())
    # A data sheet that is below what surely passed is not kept.
    more = measured(path, with_figures(intra, 400.0)).cluster.network.gigabit_per_s
    assert 900 < more < 1100


def test_a_fit_above_the_data_sheet_is_told(tmp_path):
    fit = measured(written(tmp_path, sweep(4, 8)), with_figures(220.0, 160.0))
    assert fit.cluster.network.gigabit_per_s == 160
    assert "gigabit_per_s = 160: the cluster's is kept; it is at least 151" in " ".join(fit.lines())


def test_a_bandwidth_within_that_the_times_refute_is_refused(tmp_path):
    with one_line(
        InstanceError, "intra_gigabytes_per_s = 100 the phase within nodes would take longer than everything"
    ):
        measured(written(tmp_path, sweep(2, 8, inter=200e9, overlap=True)), with_figures(100.0, 1600.0))
    with one_line(InstanceError, "it is at least 22.04: give what a run on one node shows"):
        measured(written(tmp_path, sweep(4, 8)), "tag-testbed")


def with_figures(intra, network):
    base = load("aws-p4d")
    servers = base.servers[0].model_copy(update={"intra_gigabytes_per_s": intra})
    own = base.network.model_copy(update={"gigabit_per_s": network})
    return base.model_copy(update={"servers": (servers,), "network": own})


def test_small_messages_do_not_pull_large_ones_off(tmp_path):
    """Small messages have a protocol of their own: large ones take a tenth of a millisecond more."""
    fit = measured(written(tmp_path, sweep(1, 8, protocol_s=1e-4, sizes=range(3, 34))))
    assert fit.cluster.servers[0].intra_gigabytes_per_s == pytest.approx(220, rel=2e-2)
    assert np.abs(fit.residuals[0][-5:]).max() < 0.03
    assert np.abs(fit.residuals[0][:10]).max() < 0.1


def test_what_is_measured_is_confirmed(tmp_path):
    """100 GB/s look like 12.5 of them in bits; the file that is written is read again."""
    path = tmp_path / "mine.toml"
    cluster = measured(written(tmp_path, sweep(2, 1, inter=1.5625e9))).cluster
    assert cluster.network.gigabit_per_s == pytest.approx(12.5, rel=1e-2)
    path.write_text(cluster.to_toml(), encoding="utf-8")
    assert load(path) == cluster


@pytest.mark.parametrize(
    ("gpu", "known"),
    [
        ("NVIDIA A100-SXM4-40GB", "a100"),
        ("NVIDIA A100 80GB PCIe", "a100-80"),
        ("NVIDIA H100 80GB HBM3", "h100"),
        ("Tesla V100-SXM2-16GB", "v100"),
        ("Tesla P100-PCIE-16GB", "p100"),
        ("NVIDIA GeForce GTX 1080 Ti", "1080ti"),
        ("NVIDIA RTX A1000", None),
        ("Quadro P1000", None),
        ("Tesla V100S-PCIE-32GB", None),
        ("GeForce GTX 1080", None),
        ("NVIDIA A100-SXM4-40GB MIG 1g.5gb", None),
    ],
)
def test_gpus_are_known_by_whole_words(gpu, known, tmp_path):
    path = written(tmp_path, sweep(1, 2, gpu=gpu))
    if known:
        assert measured(path).cluster.servers[0].accelerator == known
    else:
        with one_line(InstanceError, f"it is not known what a '{gpu}' sustains"):
            measured(path)


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
    "all-gather": (sweep(1, 8, factor=7 / 8), "in an all-reduce on 8 ranks 1.75 times the algorithm's"),
    "a slow one": (sweep(4, 2, factor=7 / 8, sizes=(10, 12, 14)), "in an all-reduce on 8 ranks 1.75 times"),
    "another program": (
        sweep(2, 1, program="sendrecv_perf"),
        "line 1: it is sendrecv_perf's; give what all_reduce_perf",
    ),
    "a broadcast": (sweep(2, 1, how="none 0"), "redop is none, so that it is no all-reduce"),
    "a reduction": (sweep(2, 1, how="sum 0"), "root is 0, and an all-reduce has none"),
    "unlike GPUs": (
        sweep(2, 2).replace(
            "on node-1 device  1 [0x0f] NVIDIA A100-SXM4-40GB", "on node-1 device  1 [0x0f] Tesla V100"
        ),
        "a run is on unlike GPUs (3 NVIDIA A100-SXM4-40GB, 1 Tesla V100)",
    ),
    "unlike runs": (sweep(1, 2) + sweep(1, 2, gpu="Tesla V100"), "its runs are on unlike GPUs (NVIDIA A100"),
    "mixed": (
        "".join(f"{line}\n{line}\n" for line in sweep(1, 2).splitlines()),
        "rank 1 comes where rank 2 was to come; give the lines of one run after those of another",
    ),
    "no growth": (sweep(1, 2, sizes=(1, 2, 3)), "no bandwidth explains the times on 1 x 2 ranks"),
    "few sizes": (sweep(1, 8, sizes=(20, 24)), "2 sizes; a line needs at least 3"),
    "wrong results": (sweep(1, 2).replace(" 0 1", " 7 1"), "7 results were wrong"),
    "cut": (sweep(1, 2).replace(" float sum -1 ", " float sum "), "expected size, count, type"),
    "no time": (re.sub(r"(sum -1 +)[\d.]+", r"\g<1>1e-320", sweep(1, 2)), "us; expected positive figures"),
    "stranger": (sweep(1, 2, gpu="Riva 128"), "it is not known what a 'Riva 128' sustains"),
}


@pytest.mark.parametrize("case", BAD)
def test_what_is_no_sweep_is_told_in_a_line(case, tmp_path):
    text, told = BAD[case]
    with one_line(InstanceError, told):
        measured(written(tmp_path, text))


def test_it_makes_no_instance(tmp_path):
    with one_line(OptionError, "makes a cluster, no instance"):
        convert(written(tmp_path, sweep(4, 8)), "nccl-tests")
