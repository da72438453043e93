"""The reader of Philly and what all readers of traces share: figures taken independently, and files gone wrong."""

import csv
import gzip
from collections import Counter

import numpy as np
import pytest
from refusals import one_line
from shared_data import shared_data

import ddlopt
from ddlopt.cli import run
from ddlopt.instances import convert
from ddlopt.instances.library.scheduling.instances import FROM_PHILLY
from ddlopt.instances.readers.traces.trace_jobs import busy_quantile
from ddlopt.instances.workloads.cluster_models import cluster_model, models_by_gpu_hours
from ddlopt.models.errors import InstanceError, OptionError
from ddlopt.models.scheduling import SchedulingInstance

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


@pytest.mark.slow
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


@pytest.mark.slow
@pytest.mark.parametrize(("cluster", "count"), [("ee9e8c", 1511), ("0e4a51", 1435), (103959, 1934)])
def test_virtual_clusters_of_philly(cluster, count, whole_philly):
    path, everything = whole_philly
    instance = convert(path, "philly", virtual_cluster=cluster)
    assert len(instance.jobs) == count
    assert f"virtual cluster {cluster}" in instance.source
    assert f"{count} jobs" in instance.source
    same = {job.name: job for job in everything.jobs}
    assert all(job.timing == same[job.name].timing for job in instance.jobs[::50])


@pytest.mark.parametrize("name", FROM_PHILLY)
@pytest.mark.slow
def test_the_bundled_hour_is_what_the_trace_says(name):
    path = shared_data("traces/philly.csv")
    read, bundled = convert(path, "philly", name=name, **FROM_PHILLY[name]), ddlopt.load(f"scheduling/{name}")
    # The licence is that of the file that was read here, which no row of it says.
    assert "CC-BY-4.0" in bundled.source
    assert read.model_copy(update={"source": bundled.source}) == bundled


@pytest.mark.slow
def test_unknown_virtual_cluster_lists_all_15():
    with pytest.raises(
        InstanceError, match=r"no virtual cluster 'x'; there are, with jobs: 6214e9 \(41226\)"
    ) as caught:
        convert(shared_data("traces/philly.csv"), "philly", virtual_cluster="x")
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
        (replaced("gpu_time", "duration"), {}, "column duration is given twice"),
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
        (PHILLY, {"widths": [3]}, "none of 5 jobs has a width and duration within the limits"),
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
        ({"widths": 4}, r"widths is 4; it must be a list such as \[1, 2\], each a whole number"),
        ({"widths": ["4"]}, r"widths is \['4'\]; it must be a list such as \[1, 2\], each a whole number"),
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
    with one_line(OptionError, match=message):
        philly(**options)


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
