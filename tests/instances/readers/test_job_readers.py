"""Readers of openb, Gavel and our own CSV of jobs: small files by hand, and files gone wrong."""

import json

import pytest
from refusals import one_line

from ddlopt.instances import convert
from ddlopt.instances.workloads.cluster_models import cluster_model
from ddlopt.models.errors import InstanceError, OptionError
from ddlopt.models.scheduling import RingTiming
from ddlopt.models.scheduling.bounds import bound
from ddlopt.solvers.catalogue import method
from ddlopt.solvers.contracts import Limits

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
    with one_line(InstanceError, match=message):
        openb(changed)


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


def test_gavel_times_with_a_fair_share(gavel):
    """Shockwave reports the time alone times jobs over GPUs, at least 1, however wide a job is."""
    rows = [[*row[:7], "gns", *row[7:9], "1200", row[9]] for row in (*GAVEL, *[GAVEL[1]] * 6)]
    asked = {"gpus": 4, "objective": "finish_time_fairness"}
    counted = gavel(rows, fair="count", **asked)
    alone = [job.minibatches / float(job.timing.minibatches_per_s(job.max_workers)) for job in counted.jobs]
    assert [job.fair_s for job in counted.jobs] == pytest.approx([8 / 4 * each for each in alone])
    assert "takes 2 times as long as alone" in counted.source
    assert [job.fair_s for job in gavel(rows, **asked).jobs] == [None] * 8
    few = gavel(fair="count", **asked)
    assert few.jobs[1].fair_s == pytest.approx(1200)
    with pytest.raises(OptionError, match="fair is 'count', which counts in objective 'finish_time_fairness' only"):
        gavel(fair="count")
    with pytest.raises(OptionError, match="fair is 'even'; use one of: share, count"):
        gavel(fair="even", **asked)


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


TYPES = {
    "v100": {"('A (batch size 8)', 4)": {"null": 30.0}, "('B', 1)": {"null": 2.0}},
    "p100": {"('A (batch size 8)', 4)": {"null": 12.0}, "('B', 1)": {"null": 3.0}},
    "k80": {"('B', 1)": {"null": 0.5}},
}


def test_gavel_takes_all_types(gavel):
    instance = gavel(table=TYPES, types="v100:6, p100:4,k80:1", gpus_per_server=4)
    second, first = instance.jobs
    assert (first.speeds, second.speeds) == (
        {"v100": 1.0, "p100": 0.4, "k80": 0.0},
        {"v100": 2 / 3, "p100": 1.0, "k80": 1 / 6},
    )
    assert float(first.timing.minibatches_per_s(4)) == pytest.approx(30.0, rel=1e-12)
    assert float(second.timing.minibatches_per_s(1)) == 3.0
    held = [(group.type, group.count, group.capacity["gpu"]) for group in instance.servers]
    assert held == [("v100", 1, 4), ("v100", 1, 2), ("p100", 1, 4), ("k80", 1, 1)]
    assert not instance.mixed_types
    assert "on v100 and p100 and k80" in instance.source
    assert gavel(table=TYPES, types="v100:6,p100:4", mixed_types=True).mixed_types
    lone = gavel(table=TYPES, types="v100:8")
    assert lone.jobs == gavel(table=TYPES, gpus=8).jobs
    assert not lone.accelerators.matter


def test_gavel_horizons_are_long_enough_on_types(gavel):
    # 36000 mini-batches at 30 or 12 in a second: 3.3 and 8.3 slots of 360 s; the other job has the K80 meanwhile.
    for types, slots in (("v100:4,k80:1", 4), ("p100:4,k80:1", 9)):
        instance = gavel(table=TYPES, types=types, objective="makespan")
        assert bound(instance) <= instance.slots * instance.slot_s
        result = method("time-indexed", "scheduling").solve(instance, Limits(time_s=20))
        assert result.status == "optimal"
        assert float(result.objective) == slots * 360


def test_gavel_jobs_wider_than_any_type(gavel):
    with one_line(InstanceError, match="row 1 takes 4 GPUs, but there are 3 on which it can be at once"):
        gavel(table=TYPES, types="v100:3,p100:3")
    assert gavel(table=TYPES, types="v100:3,p100:3", mixed_types=True).jobs
    with one_line(InstanceError, match="row 1 takes 4 GPUs, but there are 3"):
        gavel(table=TYPES, types="v100:3,k80:3", mixed_types=True)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"types": "v100:3", "gpus": 3}, "gpus is 3, but types says how many there are"),
        ({"types": "v100:3", "worker_type": "k80"}, "worker_type is 'k80', but types has 'v100:3'; give one"),
        ({"types": "v100"}, "types has 'v100'; write a type and a number of GPUs"),
        ({"types": "v100:x"}, "types has 'v100:x'; write a type"),
        ({"types": "v100:0"}, "types has 'v100:0'; write a type"),
        ({"types": "v100:1.5"}, r"types has 'v100:1\.5'; write a type"),
        ({"types": ""}, "types has ''; write a type"),
        ({"types": ":3"}, "types has ':3'; write a type"),
        ({"types": "v100:3,v100:4"}, "types has 'v100' twice"),
        ({"types": "a100:3"}, "has: v100, p100, k80"),
        ({"types": "v100:8", "mixed_types": True}, "mixed_types is true, but types has one"),
        ({"mixed_types": True}, "mixed_types is true, but there is one type of GPU"),
    ],
)
def test_gavel_types_gone_wrong(gavel, options, message):
    with one_line(OptionError, match=message):
        gavel(table=TYPES, **options)


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
    with one_line(InstanceError, match=message):
        gavel(rows, table)


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
    with one_line(InstanceError, match=message):
        jobs_csv(*lines, **options)


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
