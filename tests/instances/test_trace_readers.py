"""Readers of traces: figures taken independently from the same files, small files by hand, and files gone wrong."""

import csv
import gzip
import json
from collections import Counter

import numpy as np
import pytest
from shared_data import shared_data

from ddlopt.cli import run
from ddlopt.instances import convert
from ddlopt.instances.readers.trace_jobs import busy_quantile
from ddlopt.instances.workloads.cluster_models import cluster_model, models_by_gpu_hours
from ddlopt.models.errors import InstanceError, OptionError
from ddlopt.models.scheduling import RingTiming, SchedulingInstance

# Philly ---------------------------------------------------------------------------------------------------------------

PHILLY = """timestamp,duration,num_gpus,gpu_time,cluster
2017-10-03 09:30:00,7200.0,2,14400.0,aa
2017-10-03 08:00:00,1800.0,1,1800.0,aa
2017-10-03 08:10:00,60.0,1,60.0,bb
2017-10-03 12:00:00,90000.0,12,1080000.0,aa
2017-10-04 08:00:00,3600.0,4,14400.0,aa
"""


@pytest.fixture
def philly(tmp_path):
    """Convert a small Philly file."""
    path = tmp_path / "philly.csv"
    path.write_text(PHILLY)

    def call(text=PHILLY, **options):
        path.write_text(text)
        return convert(path, "philly", **options)

    return call


@pytest.fixture(scope="module")
def whole_philly():
    """The public job list, and the instance of all of it."""
    path = shared_data("traces/philly.csv")
    return path, convert(path, "philly")


def test_all_of_philly(whole_philly):
    path, instance = whole_philly
    with path.open() as file:
        rows = list(csv.DictReader(file))
    assert len(instance.jobs) == len(rows) == 82_247
    assert Counter(job.max_workers for job in instance.jobs) == Counter(int(row["num_gpus"]) for row in rows)
    assert instance.jobs[0].arrival == 0
    assert instance.slots >= 108 * 24
    assert instance.name == "philly"
    # Durations in the same place, whatever the model: what N workers do in the recorded time.
    by_row = {f"row-{number}": row for number, row in enumerate(rows, 2)}
    for job in instance.jobs[::997]:
        row = by_row[job.name]
        speed = job.timing.minibatches_per_s(job.max_workers)
        assert job.minibatches / speed == pytest.approx(float(row["duration"]), rel=1e-5)
    assert instance.server_count * 8 >= 128


@pytest.mark.parametrize(("cluster", "count"), [("ee9e8c", 1511), ("0e4a51", 1435), (103959, 1934)])
def test_virtual_clusters_of_philly(cluster, count, whole_philly):
    path, everything = whole_philly
    instance = convert(path, "philly", virtual_cluster=cluster)
    assert len(instance.jobs) == count
    assert f"virtual cluster {cluster}" in instance.source
    assert f"{count} jobs" in instance.source
    same = {job.name: job for job in everything.jobs}
    assert all(job.timing == same[job.name].timing for job in instance.jobs[::50])


def test_unknown_virtual_cluster_lists_all_15(whole_philly):
    with pytest.raises(
        InstanceError, match=r"no virtual cluster 'x'; there are, with jobs: 6214e9 \(41226\)"
    ) as caught:
        convert(whole_philly[0], "philly", virtual_cluster="x")
    assert str(caught.value).count("(") == 15


def test_small_philly_file(philly):
    instance = philly(virtual_cluster="aa", hours=26, gpus=16)
    assert [job.name for job in instance.jobs] == ["row-3", "row-2", "row-5", "row-6"]
    assert [job.arrival for job in instance.jobs] == [0, 1, 4, 24]
    assert [(job.min_workers, job.max_workers) for job in instance.jobs] == [(1, 1), (1, 2), (1, 12), (1, 4)]
    assert (instance.slots, instance.slot_s, instance.server_count) == (26, 3600.0, 2)
    assert instance.name == "philly-aa-26h"
    hours = {"row-3": 0.5, "row-2": 4, "row-5": 300, "row-6": 4}
    for job in instance.jobs:
        own = [cluster_model(name).timing(12.5e9) for name in models_by_gpu_hours(hours[job.name])]
        assert job.timing in own
    for job, duration_s in zip(instance.jobs, [1800, 7200, 90_000, 3600], strict=True):
        assert job.minibatches == pytest.approx(job.timing.minibatches_per_s(job.max_workers) * duration_s, rel=1e-5)


def test_windows_slots_and_what_is_left_out(philly):
    window = philly(start="2017-10-03 09:00:00", hours=4, slot_s=1800.0)
    assert [(job.name, job.arrival) for job in window.jobs] == [("row-2", 1), ("row-5", 6)]
    assert window.slots == 8
    assert philly(start="2017-10-04").jobs[0].arrival == 8
    assert [job.name for job in philly(virtual_cluster="aa", hours=1.5).jobs] == ["row-3"]  # row 2 is just too late
    kept = philly(virtual_cluster="aa", widths=[1, 2, 4], shortest_s=3600.0)
    assert [job.name for job in kept.jobs] == ["row-2", "row-6"]
    assert "left out 2 jobs of widths other than 1, 2, 4 or less than 3600 s" in kept.source
    # Without a window: until the last job has ended if each runs at once.
    assert philly().slots == 4 + 25
    assert philly(widths=[1]).slots == 1


def test_rigid_jobs_finish_in_the_horizon(philly):
    instance = philly(virtual_cluster="aa", rigid=True, preemptive=False, objective="makespan", utility="fair")
    assert all(job.min_workers == job.max_workers for job in instance.jobs)
    assert (instance.objective, instance.preemptive) == ("makespan", False)
    assert {job.utility.kind for job in instance.jobs} == {"fair"}
    # One after the other takes 1 + 2 + 25 + 1 slots after the last arrival, slot 24.
    assert instance.slots >= 24 + 29
    assert philly(virtual_cluster="aa", objective="makespan", hours=25, tail_hours=3).slots == 28


def test_slack_makes_deadlines(philly):
    instance = philly(virtual_cluster="aa", slack=1.5)
    # 8:00 + 45 min, 9:30 + 3 h, 12:00 + 37.5 h (past the end), 8:00 the next day + 90 min, in slots from 8:00 on.
    assert [job.deadline for job in instance.jobs] == [1, 5, None, 26]
    assert "due 1.5 times its duration after its arrival, which is synthetic" in instance.source
    assert {job.deadline for job in philly(virtual_cluster="aa").jobs} == {None}


def test_seed_draws_networks(philly):
    timings = {tuple(job.timing.gradient_bytes for job in philly(seed=seed).jobs) for seed in range(8)}
    assert len(timings) > 1
    assert philly(seed=3) == philly(seed=3)


def test_networks_are_synthetic_and_say_so(philly):
    star, tree = (philly(network=name, gpus_per_server=1) for name in ("star", "leaf-spine"))
    assert star.network.is_tree(star.server_count)
    assert star.network.switches == 1
    assert tree.network.switches == 1 + -(-tree.server_count // 4)
    assert "the network is synthetic: leaf-spine" in tree.source
    assert philly(network="star", gpus=16, nic_bytes_per_s=7.0).network.arcs[0, 2] == 7.0


def test_cluster_size_is_a_quantile_of_use(philly):
    text = "timestamp,duration,num_gpus,cluster\n" + "".join(
        f"2017-10-03 {hour:02}:00:00,{3600 * length},{gpus},a\n" for hour, length, gpus in [(0, 10, 2), (4, 1, 3)]
    )
    sizes = {q: philly(text, gpus_per_server=1, busy_quantile=q).server_count for q in (0.5, 0.9, 0.91, 1.0)}
    assert sizes == {0.5: 3, 0.9: 3, 0.91: 5, 1.0: 5}  # never below the widest job
    assert philly(text, gpus_per_server=4, busy_quantile=1.0).server_count == 2


def test_busy_quantile_against_sampling():
    rng = np.random.default_rng(1)
    for _ in range(20):
        starts, lengths = rng.integers(0, 50, 12).astype(float), rng.integers(1, 40, 12).astype(float)
        gpus = rng.integers(1, 9, 12).astype(float)
        moments = np.arange(60) + 0.5
        running = (starts[:, None] <= moments) & (moments < (starts + lengths)[:, None])
        used = np.sort(gpus @ running)
        for quantile in (0.1, 0.5, 0.9, 1.0):
            expected = used[int(np.ceil(quantile * 60)) - 1]
            assert busy_quantile(starts, lengths, gpus, 60.0, quantile) == expected


def test_compressed_files_and_marks_of_byte_order(philly, tmp_path):
    path = tmp_path / "philly.csv.gz"
    path.write_bytes(gzip.compress(b"\xef\xbb\xbf" + PHILLY.encode()))
    assert convert(path, "philly").jobs == philly().jobs


def replaced(old, new):
    assert old in PHILLY
    return PHILLY.replace(old, new)


@pytest.mark.parametrize(
    ("text", "options", "message"),
    [
        ("", {}, "is empty"),
        ("timestamp,duration\n", {}, "columns num_gpus, cluster are missing; the header has: timestamp, duration"),
        (replaced("gpu_time,cluster", "gpu_time,vc"), {}, "column cluster is missing"),
        (replaced("gpu_time", "duration"), {}, "column duration is there twice"),
        ("timestamp,duration,num_gpus,cluster\n", {}, "there is no job in it"),
        (replaced("7200.0", "-7200"), {}, "row 2, duration is '-7200'; it must be positive"),
        (replaced("1800.0,1,1800.0", "soon,1,1800.0"), {}, "row 3, duration is 'soon'; expected a number"),
        (replaced("60.0,1", "nan,1"), {}, "row 4, duration is 'nan'; expected a finite number"),
        (replaced("7200.0,2", "7200.0,2.5"), {}, "row 2, num_gpus is '2.5'; expected a whole number"),
        (replaced("7200.0,2", "7200.0,0"), {}, "row 2, num_gpus is '0'; it must be at least 1"),
        (replaced("2017-10-03 12:00:00", "noon"), {}, "row 5, timestamp is 'noon'; expected a time such as"),
        (replaced("2017-10-03 12:00:00", "2017-13-03"), {}, "row 5, timestamp is '2017-13-03'; expected a time"),
        (replaced(",60.0,bb", ",60.0"), {}, "row 4 has 4 cells, but the header has 5"),
        (replaced("2017-10-03 09", '"2017-10-03 09'), {}, "row 2 is no CSV"),
        (PHILLY, {"virtual_cluster": "cc"}, r"no virtual cluster 'cc'; there are, with jobs: aa \(4\), bb \(1\)"),
        (
            PHILLY,
            {"start": "2017-11-01"},
            "no job arrives from 2017-11-01 00:00:00 on; arrivals are from 2017-10-03 08:00:00 to 2017-10-04 08:00:00",
        ),
        (
            PHILLY,
            {"start": "2017-10-03 20:00", "hours": 2},
            "no job arrives from 2017-10-03 20:00:00 on within 2 hours",
        ),
        (PHILLY, {"gpus": 4}, "row 5 takes 12 GPUs, but the cluster has 4; give gpus=12 or more"),
        (PHILLY, {"widths": [3]}, "none of 5 jobs has such a width and duration"),
    ],
)
def test_philly_gone_wrong(philly, text, options, message):
    with pytest.raises(InstanceError, match=message) as caught:
        philly(text, **options)
    assert "philly.csv: " in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"start": "soon"}, "start is 'soon'; in this format it is a time such as"),
        ({"start": "2017-10-03T08:00:00+02:00"}, "start is '2017-10-03T08:00:00"),
        ({"start": 7}, "start is 7; it must be a word or left out"),
        ({"hours": 0}, "hours is 0; it must be positive"),
        ({"tail_hours": -1.0}, "tail_hours is -1.0; it must be at least 0"),
        ({"slot_s": 0.0}, "slot_s is 0.0; it must be positive"),
        ({"slack": 0.0}, "slack is 0.0; it must be positive"),
        ({"gpus": 0}, "gpus is 0; it must be at least 1"),
        ({"gpus": "many"}, "gpus is 'many'; it must be a whole number or left out"),
        ({"gpus_per_server": 0}, "gpus_per_server is 0"),
        ({"busy_quantile": 0.0}, "busy_quantile is 0.0; it must be above 0 and at most 1"),
        ({"widths": 4}, "widths is 4; it must be a list, each a whole number"),
        ({"widths": ["4"]}, r"widths is \['4'\]; it must be a list, each a whole number"),
        ({"shortest_s": -1}, "shortest_s is -1"),
        ({"rigid": "yes"}, "rigid is 'yes'; it must be true or false"),
        ({"network": "ring"}, "network is 'ring'; use one of: none, star, leaf-spine"),
        ({"bandwidth_bytes_per_s": 0.0}, "bandwidth_bytes_per_s is 0.0"),
        ({"objective": "speed"}, "objective is 'speed'; use one of: utility, max_min, makespan, completion"),
        ({"utility": "much"}, "utility is 'much'; use one of: capped"),
        ({"seed": -1}, "seed is -1; it must be at least 0"),
        ({"virtual_cluster": 1.5}, "virtual_cluster is 1.5; it must be a word or a whole number or left out"),
        ({"colour": 1}, "takes no option 'colour'"),
    ],
)
def test_philly_options_gone_wrong(philly, options, message):
    with pytest.raises(OptionError, match=message) as caught:
        philly(**options)
    assert "\n" not in str(caught.value)


def test_philly_on_the_command_line(tmp_path, capsys):
    path, out = tmp_path / "philly.csv", tmp_path / "out.json"
    path.write_text(PHILLY)
    line = ["convert", path, "--from", "philly", "--virtual-cluster", "aa", "--start", "2017-10-03 08:00:00"]
    line += ["--hours", "4", "--seed", "5", "--set", "gpus=2", "--set", "widths=[1,2]", "-o", out]
    assert run([str(word) for word in line]) == 0
    instance = SchedulingInstance.from_file(out)
    assert [job.name for job in instance.jobs] == ["row-3", "row-2"]
    assert "with seed 5" in instance.source
    assert run(["convert", str(path), "--from", "philly", "--virtual-cluster", "zz"]) == 2
    assert "there is no virtual cluster 'zz'" in capsys.readouterr().err


# openb ----------------------------------------------------------------------------------------------------------------

OPENB = """name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,pod_phase,creation_time,deletion_time,scheduled_time
pod-0,12000,16384,1,1000,,LS,Running,100,7400,200
pod-1,6000,12288,1,460,,LS,Running,0,3600,0
pod-2,88000,327680,8,1000,V100M32,Burstable,Succeeded,4000,12000,4001
pod-3,20000,65536,0,0,,LS,Running,50,60,60
pod-4,11908,47104,1,1000,,BE,Pending,300,400,
"""
NODES = """sn,cpu_milli,memory_mib,gpu,model
node-0,64000,262144,2,P100
node-1,96000,393216,8,G2
node-2,96000,393216,8,G2
node-3,32000,262144,0,
"""


@pytest.fixture
def openb(tmp_path):
    """Convert a small file of pods, with a file of nodes if one is given."""

    def call(text=OPENB, nodes=None, **options):
        path, other = tmp_path / "pods.csv", tmp_path / "nodes.csv"
        path.write_text(text)
        if nodes is not None:
            other.write_text(nodes)
            options["nodes"] = other
        return convert(path, "openb", **options)

    return call


def test_openb(openb):
    instance = openb(nodes=NODES)
    assert [job.name for job in instance.jobs] == ["pod-1", "pod-3", "pod-0", "pod-2"]
    assert [job.arrival for job in instance.jobs] == [0, 0, 0, 1]
    assert instance.slots == 4
    assert [(group.count, group.capacity) for group in instance.servers] == [
        (2, {"gpu": 8, "cpu": 96, "memory_bytes": 393216 * 2**20}),
        (1, {"gpu": 2, "cpu": 64, "memory_bytes": 262144 * 2**20}),
        (1, {"gpu": 0, "cpu": 32, "memory_bytes": 262144 * 2**20}),
    ]
    shared, cpus_only, _, wide = instance.jobs
    assert shared.demand == {"gpu": 0.46, "cpu": 6, "memory_bytes": 12288 * 2**20}
    assert cpus_only.demand == {"gpu": 0, "cpu": 20, "memory_bytes": 65536 * 2**20}
    assert (wide.min_workers, wide.max_workers) == (8, 8)
    assert wide.demand == {"gpu": 1, "cpu": 11, "memory_bytes": 40960 * 2**20}
    assert wide.minibatches == pytest.approx(wide.timing.minibatches_per_s(8) * 7999, rel=1e-5)
    assert cpus_only.minibatches == pytest.approx(cpus_only.timing.minibatches_per_s(1), rel=1e-5)
    assert "left out 1 pods of the file that were never scheduled" in instance.source


def test_openb_options(openb):
    assert openb().servers[0].count == 2  # 8 GPUs and shares of others for most of the time
    assert openb(servers=3).server_count == 3
    assert openb(rigid=False).jobs[-1].min_workers == 1
    assert [job.name for job in openb(cpu_pods=False).jobs] == ["pod-1", "pod-0", "pod-2"]
    assert [job.name for job in openb(start="100", hours=0.5).jobs] == ["pod-0"]


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("creation_time,", "", "column creation_time is missing"),
        ("100,7400", "100,40", "row 2, deletion_time is '40'; before creation_time, 100"),
        (",200\n", ",20\n", "row 2, scheduled_time is '20'; it must be at least 100"),
        (",200\n", ",20000\n", "row 2, scheduled_time is '20000'; after deletion_time, 7400"),
        ("1,460", "1,0", "row 3, gpu_milli is '0'; a pod with one GPU uses 1..1000"),
        ("1,460", "1,1460", "row 3, gpu_milli is '1460'; a pod with one GPU"),
        ("1,460", "1.5,460", "row 3, num_gpu is '1.5'; expected a whole number"),
        ("6000,12288", "-6000,12288", "row 3, cpu_milli is '-6000'; it must be at least 0"),
        ("20000,65536,0", "0,0,0", "row 5, cpu_milli is '0'; the pod asks for nothing"),
        ("16384", "16 GiB", "row 2, memory_mib is '16 GiB'; expected a number"),
    ],
)
def test_openb_gone_wrong(openb, old, new, message):
    changed = OPENB.replace(old, new, 1)
    assert changed != OPENB
    with pytest.raises(InstanceError, match=message) as caught:
        openb(changed)
    assert "\n" not in str(caught.value)


def test_openb_nodes_gone_wrong(openb):
    with pytest.raises(InstanceError, match=r"nodes\.csv: there is no node in it"):
        openb(nodes=NODES.split("\n")[0] + "\n")
    with pytest.raises(InstanceError, match=r"nodes\.csv: row 3, gpu is 'eight'"):
        openb(nodes=NODES.replace("393216,8,G2", "393216,eight,G2", 1))
    with pytest.raises(InstanceError, match=r"max_workers is 8, but the cluster holds 2"):
        openb(nodes="sn,cpu_milli,memory_mib,gpu\na,64000,262144,2\n", cpu_pods=False, start=4000.0)
    with pytest.raises(OptionError, match="start is 'monday'; in this format it is a number of seconds"):
        openb(start="monday")
    with pytest.raises(OptionError, match="servers is 0; it must be at least 1"):
        openb(servers=0)


# Gavel ----------------------------------------------------------------------------------------------------------------

TABLE = {
    "v100": {
        "('A (batch size 8)', 1)": {"null": 10.0, "('B', 1)": [5.0, 5.0]},
        "('A (batch size 8)', 2)": {"null": 16.0},
        "('A (batch size 8)', 4)": {"null": 30.0},
        "('B', 1)": {"null": 2.0},
        "('B', 2)": {"null": 0.0},
    },
    "k80": {"('B', 1)": {"null": 0.5}},
}
GAVEL = (
    ["A (batch size 8)", "python3 a.py", "dir", "--steps", "1", "36000", "4", "5", "2.0", "300"],
    ["B", "python3 b.py", "dir", "--steps", "1", "500", "1", "1", "-1.000000", "0"],
)


@pytest.fixture
def gavel(tmp_path):
    """Convert a small trace of rows, with the small table of throughputs."""

    def call(rows=GAVEL, table=TABLE, **options):
        path, other = tmp_path / "small.trace", tmp_path / "table.json"
        path.write_text("".join("\t".join(row) + "\n" for row in rows))
        other.write_text(table if isinstance(table, str) else json.dumps(table))
        return convert(path, "gavel", throughputs=other, **options)

    return call


def test_gavel_jobs_run_at_the_tables_throughput(gavel):
    instance = gavel()
    second, first = instance.jobs
    assert (first.name, second.name) == ("row-1", "row-2")
    assert (first.min_workers, first.max_workers, first.minibatches, first.utility.value) == (4, 4, 36000, 5)
    assert float(first.timing.minibatches_per_s(4)) == pytest.approx(30.0, rel=1e-12)
    assert float(second.timing.minibatches_per_s(1)) == 2.0
    assert (second.deadline, first.arrival, instance.slot_s) == (None, 0, 360.0)
    assert instance.slots == 5  # 300 s + 36000 / 30 s
    assert first.deadline is None  # due after 2700 s, past the horizon
    longer = gavel(tail_hours=1.0)
    assert longer.jobs[1].deadline == 8
    assert gavel(tail_hours=1.0, deadlines=False).jobs[1].deadline is None


def test_gavel_layouts(gavel):
    rows = [row[:7] + row[7:] for row in GAVEL]
    seven = [[row[0], row[1], row[3], row[4], row[5], row[9], row[6]] for row in rows]
    eleven = [[*row[:7], "static", *row[7:]] for row in rows]
    twelve = [[*row[:7], "gns", *row[7:9], "1200", row[9]] for row in rows]
    ten = gavel()
    assert gavel(eleven).jobs == gavel(twelve).jobs == ten.jobs
    short = gavel(seven)
    assert [job.minibatches for job in short.jobs] == [job.minibatches for job in ten.jobs]
    assert [job.utility.value for job in short.jobs] == [1, 1]


def test_gavel_elastic_jobs_follow_a_fit(gavel):
    table = {"v100": {f"('A (batch size 8)', {w})": {"null": w / (0.1 + 0.08 * (w - 1) / w)} for w in (1, 2, 4)}}
    job = gavel(GAVEL[:1], table, elastic=True, bandwidth_bytes_per_s=1e9).jobs[0]
    assert (job.min_workers, job.max_workers) == (1, 4)
    assert [float(job.timing.iteration_s(w)) for w in (1, 2, 4)] == pytest.approx([0.1, 0.14, 0.16], rel=1e-4)
    assert job.timing.gradient_bytes == pytest.approx(0.04 * 1e9, rel=1e-3)
    assert gavel(GAVEL[1:], elastic=True).jobs[0].timing == gavel(GAVEL[1:]).jobs[0].timing


def test_gavel_other_types_and_missing_jobs(gavel):
    assert float(gavel(GAVEL[1:], worker_type="k80").jobs[0].timing.minibatches_per_s(1)) == 0.5
    instance = gavel(worker_type="k80", missing="skip")
    assert [job.name for job in instance.jobs] == ["row-2"]
    assert "left out 1 jobs of the file that the table does not have" in instance.source


def changed(place, value, row=0):
    rows = [list(each) for each in GAVEL]
    rows[row][place] = value
    return rows


@pytest.mark.parametrize(
    ("rows", "table", "message"),
    [
        ([], TABLE, r"small\.trace: is empty"),
        ([["a", "b"]], TABLE, r"row 1 has 2 fields between tabs; a trace has 7, 10, 11, 12"),
        (changed(0, "C"), TABLE, "row 1, job_type is 'C'; the table has no throughput of it with 4 workers on v100"),
        (changed(6, "8"), TABLE, "the table has no throughput of it with 8 workers on v100"),
        (changed(6, "2", 1), TABLE, "row 2, job_type is 'B'; the table has a throughput of 0 of it with 2 workers"),
        (changed(6, "0"), TABLE, "row 1, scale_factor is '0'; it must be at least 1"),
        (changed(5, "1e3.5"), TABLE, "row 1, total_steps is '1e3.5'; expected a number"),
        (changed(5, "0"), TABLE, "row 1, total_steps is '0'; it must be at least 1"),
        (changed(7, "-1"), TABLE, "row 1, priority_weight is '-1'; it must be positive"),
        (changed(8, "soon"), TABLE, "row 1, SLO is 'soon'; expected a number"),
        (changed(9, "-5"), TABLE, "row 1, arrival_time is '-5'; it must be at least 0"),
        (GAVEL, "", r"table\.json: is empty"),
        (GAVEL, "{", r"table\.json: not valid JSON"),
        (GAVEL, [1], r"table\.json: is no table of throughputs"),
        (GAVEL, {"v100": 3}, r"table\.json: is no table of throughputs"),
        (GAVEL, {"v100": {"A": {"null": 1.0}}}, r"v100, A: a key is written \('job type', workers\)"),
        (GAVEL, {"v100": {"(1, 2)": {"null": 1.0}}}, r"v100, \(1, 2\): a key is written"),
        (GAVEL, {"v100": {"('A', 1)": {}}}, "'null', the throughput of the job alone, is None; expected a number"),
        (GAVEL, {"v100": {"('A', 1)": {"null": -1}}}, "is -1; expected a number"),
    ],
)
def test_gavel_gone_wrong(gavel, rows, table, message):
    with pytest.raises(InstanceError, match=message) as caught:
        gavel(rows, table)
    assert "\n" not in str(caught.value)


def test_gavel_options_gone_wrong(gavel, tmp_path):
    with pytest.raises(OptionError, match=r"worker_type is 'a100', but .* has: v100, k80"):
        gavel(worker_type="a100")
    with pytest.raises(OptionError, match="missing is 'drop'; use one of: refuse, skip"):
        gavel(missing="drop")
    with pytest.raises(OptionError, match="format 'gavel' needs throughputs"):
        convert(tmp_path / "small.trace", "gavel")


# Our own CSV ----------------------------------------------------------------------------------------------------------


@pytest.fixture
def jobs_csv(tmp_path):
    """Convert lines of a CSV of jobs."""

    def call(*lines, **options):
        path = tmp_path / "jobs.csv"
        path.write_text("\n".join(lines) + "\n")
        return convert(path, "jobs-csv", **options)

    return call


def test_the_least_that_jobs_need(jobs_csv):
    instance = jobs_csv("name,arrival_s,workers,duration_s", "b,4000,1,3600", "a,0,4,1800")
    first, second = instance.jobs
    assert (first.name, first.arrival, first.min_workers, first.max_workers, first.minibatches) == ("a", 0, 4, 4, 7200)
    assert (second.name, second.arrival, second.minibatches) == ("b", 1, 3600)
    assert first.timing == RingTiming(gradient_bytes=0, bandwidth_bytes_per_s=12.5e9, forward_s_per_sample=1)
    assert (instance.slots, instance.server_count, instance.name) == (3, 1, "jobs")


def test_all_columns_of_jobs(jobs_csv):
    header = (
        "name,arrival_s,min_workers,max_workers,duration_s,minibatches,model,compute_s,gradient_bytes,"
        "bandwidth_bytes_per_s,reduction_bytes_per_s,latency_s,deadline_s,value,demand_gpu,demand_cpu"
    )
    instance = jobs_csv(
        header,
        "own,0,2,4,,1000,,0.5,1e8,1e9,1e10,1e-5,7000,3,1,2",
        "modelled,0,,2,3600,,vgg16,,,,,,,,,",
        "mixed,10,1,1,3600,,vgg16,0.25,,2e9,,,,,0,4",
        servers=[{"count": 2, "capacity": {"gpu": 4, "cpu": 16}, "idle_w": 100}],
        hours=3,
    )
    own, modelled, mixed = instance.jobs
    assert own.timing == RingTiming(
        gradient_bytes=1e8,
        bandwidth_bytes_per_s=1e9,
        reduction_bytes_per_s=1e10,
        forward_s_per_sample=0.5,
        latency_s=1e-5,
    )
    assert (own.min_workers, own.max_workers, own.minibatches, own.deadline, own.utility.value) == (2, 4, 1000, 2, 3)
    assert own.demand == {"gpu": 1, "cpu": 2}
    assert modelled.timing == cluster_model("vgg16").timing(12.5e9)
    assert (modelled.min_workers, modelled.deadline, modelled.demand) == (1, None, {"gpu": 1})
    assert mixed.timing.compute_s() == 0.25
    assert (mixed.timing.gradient_bytes, mixed.timing.bandwidth_bytes_per_s) == (553_430_176, 2e9)
    assert mixed.demand == {"gpu": 0, "cpu": 4}
    assert instance.servers[0].idle_w == 100


def test_deadlines_are_rounded_up_and_leave_a_slot(jobs_csv):
    header = "name,arrival_s,workers,duration_s,deadline_s"
    instance = jobs_csv(header, "a,0,1,60,3600", "b,0,1,60,3601", "c,3599,1,60,3600", "d,0,1,60,36000", hours=9)
    assert [job.deadline for job in instance.jobs] == [1, 2, None, 1]
    assert [job.name for job in instance.jobs] == ["a", "b", "d", "c"]


LEAST = "name,arrival_s,workers,duration_s"


@pytest.mark.parametrize(
    ("lines", "options", "message"),
    [
        (["name,workers,duration_s", "a,1,1"], {}, "column arrival_s is missing; the header has: name, workers, dur"),
        (["name,arrival_s,duration_s", "a,1,1"], {}, "a column workers or max_workers is missing"),
        (["name,arrival_s,workers", "a,1,1"], {}, "a column duration_s or minibatches is missing"),
        ([LEAST + ",colour", "a,0,1,1,red"], {}, "there is no column 'colour'; there are: name, arrival_s, workers"),
        ([LEAST + ",demand_", "a,0,1,1,1"], {}, "there is no column 'demand_'"),
        ([LEAST + ",demand_cpu", "a,0,1,1,1"], {}, "workers take cpu; say what the servers have"),
        ([LEAST, "a,0,1,-60"], {}, "row 2, duration_s is '-60'; it must be positive"),
        ([LEAST, "a,0,1,60", "b,later,1,60"], {}, "row 3, arrival_s is 'later'; expected a number"),
        ([LEAST, "a,0,0,60"], {}, "row 2, workers is '0'; it must be at least 1"),
        ([LEAST, "a,0,,60"], {}, "row 2, workers is ''; expected a number of workers"),
        ([LEAST, "a,0,1,"], {}, "row 2, duration_s is ''; give either duration_s or minibatches"),
        ([LEAST + ",minibatches", "a,0,1,5,5"], {}, "row 2, duration_s is '5'; give either duration_s or minibatches"),
        ([LEAST + ",max_workers", "a,0,1,5,5"], {}, "row 2, max_workers is '5'; give either workers, or min_workers"),
        (
            ["name,arrival_s,min_workers,max_workers,duration_s", "a,0,3,2,5"],
            {},
            "row 2, min_workers is '3'; more than max_workers, 2",
        ),
        ([LEAST + ",deadline_s", "a,60,1,5,60"], {}, "row 2, deadline_s is '60'; it must be after arrival_s, 60"),
        ([LEAST + ",model", "a,60,1,5,alexnet"], {}, "row 2, model is 'alexnet'; there are: bert-tiny"),
        ([LEAST + ",value", "a,60,1,5,0"], {}, "row 2, value is '0'; it must be positive"),
        ([LEAST + ",compute_s", "a,60,1,5,0"], {}, "row 2, compute_s is '0'; it must be positive"),
        ([LEAST + ",gradient_bytes", "a,60,1,5,-1"], {}, "row 2, gradient_bytes is '-1'; it must be at least 0"),
        ([LEAST + ",demand_gpu", "a,60,1,5,0"], {}, "row 2, demand_gpu is '0'; a worker must take something"),
        ([LEAST, "a,0,9,60"], {"gpus": 8}, "row 2 takes 9 GPUs, but the cluster has 8; give gpus=9 or more"),
        ([LEAST, "a,0,9,60"], {"servers": [{"capacity": {"gpu": 8}}]}, "max_workers is 9, but the cluster holds 8"),
        ([LEAST, "a,0,1,60"], {"start": 99.0}, "no job arrives from 99 s on; arrivals are from 0 s to 0 s"),
    ],
)
def test_jobs_gone_wrong(jobs_csv, lines, options, message):
    with pytest.raises(InstanceError, match=message) as caught:
        jobs_csv(*lines, **options)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"servers": [], "gpus": None}, "servers is empty; give groups such as"),
        ({"servers": [{"capacity": {"gpu": 8}}], "gpus": 8}, "gpus and servers both say how large"),
        ({"servers": [{"count": 0, "capacity": {"gpu": 8}}]}, "servers: count: Input should be greater"),
        ({"servers": [{"count": 1}]}, "servers: capacity: Field required"),
        ({"servers": 4}, "servers is 4; it must be a list, each an object"),
    ],
)
def test_servers_gone_wrong(jobs_csv, options, message):
    with pytest.raises(OptionError, match=message):
        jobs_csv(LEAST, "a,0,1,60", **options)
