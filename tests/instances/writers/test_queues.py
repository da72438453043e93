"""Schedules as jobs of Slurm and of Kueue: windows, widths, servers in the order of the ring, whatever names are."""

import json
import os
import subprocess
import sys

import pytest
from refusals import one_line

import ddlopt
from ddlopt import instances
from ddlopt.instances.writers import export_plan, import_plan
from ddlopt.models.errors import OptionError, SolutionError
from ddlopt.models.scheduling.instance import Job, SchedulingInstance, ServerGroup
from ddlopt.models.scheduling.network import Network
from ddlopt.models.scheduling.solution import Run, Schedule
from ddlopt.models.scheduling.timing import RingTiming

NAMES = ["scheduling/tiny-general", "scheduling/all-or-nothing-j20-t20-g16", "scheduling/philly-hour-j49-t48-g32"]
HOSTILE = ['"; touch /tmp/ddlopt-was-here; "', "$(touch /tmp/ddlopt-was-here)", "`touch /tmp/ddlopt-was-here`", "a'b"]
HOSTILE += [
    "two\nEND_OF_RUN\ntouch /tmp/ddlopt-was-here\n",
    "a\\nb",
    "é\u2028\U0001f600\u202e\x85",
    "---\nkind: Pod",
    "${X}$$(Y)",
    "#",
]

FAKE_SBATCH = """#!{python}
import json, os, sys
script = sys.stdin.read()
with open(os.environ["SAID"], "a") as said:
    said.write(json.dumps([sys.argv[1:], script]) + "\\n")
    number = said.tell()
print(number)
"""
FAKE_SRUN = """#!{python}
import json, os, sys
hosts = os.environ.get("SLURM_HOSTFILE")
print(json.dumps([sys.argv[1:], open(hosts).read().split() if hosts else None]))
"""


def small(names, demand=None, slot_s=60.0):
    """Jobs on three servers in a triangle, each with a ring through all of them in its own slot, backwards."""
    timing = RingTiming(gradient_bytes=1.0, bandwidth_bytes_per_s=1.0, forward_s_per_sample=0.1)
    jobs = tuple(
        Job(name=name, max_workers=6, timing=timing, minibatches=1.0, demand=demand or {"gpu": 1.0}) for name in names
    )
    cluster = ServerGroup(count=3, capacity={"gpu": 4.0, "cpu": 64.0, "gpu share": 9.0})
    network = Network(links=((0, 1, 100.0), (1, 2, 100.0), (2, 0, 100.0)))
    instance = SchedulingInstance(
        name="mine", slots=2 * len(names), slot_s=slot_s, servers=(cluster,), network=network, jobs=jobs
    )
    runs = []
    for place in range(len(names)):
        runs.append(Run(job=place, start=2 * place, slots=1, workers=((0, 2), (1, 2), (2, 2)), ring=(2, 1, 0)))
        runs.append(Run(job=place, start=2 * place + 1, slots=1, workers=((0, 1), (2, 3)), ring=(2, 0)))
    return instance, Schedule(instance="mine", instance_digest=instance.digest, runs=tuple(runs))


@pytest.fixture
def submitted(tmp_path):
    """What a script tells ``sbatch``, and what the scripts of its jobs tell ``srun``."""
    tools = tmp_path / "bin"
    tools.mkdir()
    for name, text in (("sbatch", FAKE_SBATCH), ("srun", FAKE_SRUN)):
        (tools / name).write_text(text.format(python=sys.executable))
        (tools / name).chmod(0o755)

    def run(text):
        script = tmp_path / "plan.sh"
        script.write_text(text, encoding="utf-8")
        here = {"PATH": f"{tools}:{os.environ['PATH']}", "SAID": str(tmp_path / "said"), "TZ": "UTC"}
        here |= {"LAUNCH": "./train.sh", "T0": "86400", "TMPDIR": str(tmp_path)}
        subprocess.run(["bash", script], env=here, check=True, capture_output=True)
        jobs = []
        for line in (tmp_path / "said").read_text().splitlines():
            told, inner = json.loads(line)
            answer = subprocess.run(["bash"], input=inner, env=here, check=True, capture_output=True, text=True).stdout
            jobs.append((told, *json.loads(answer)))
        return jobs

    return run


def test_slurm_has_windows_widths_and_servers(submitted):
    instance, schedule = small(["first", "second"], {"gpu": 1.0, "cpu": 2.0, "gpu share": 0.5})
    first, second, third, _ = submitted(export_plan(instance, schedule, "slurm", hosts="a,b.example,c-3"))
    asked, told, hosts = first
    assert asked == [
        "--parsable", "--job-name=0-first", "--begin=1970-01-02T00:00:00", "--deadline=1970-01-02T00:02:00",
        "--time=0-00:01:00", "--nodes=3", "--nodelist=c-3,b.example,a", "--ntasks=6", "--ntasks-per-node=2",
        "--gpus-per-task=1", "--cpus-per-task=2",
    ]  # fmt: skip
    assert told == ["--distribution=arbitrary", "--ntasks=6", "./train.sh", "first", "0", "60"]
    assert hosts == ["c-3", "c-3", "b.example", "b.example", "a", "a"], "ranks are in the order of the ring"
    asked, told, hosts = second
    both = ["--gpus-per-task=1", "--cpus-per-task=2"]
    one, other = (
        ["--nodes=1", "--nodelist=c-3", "--ntasks=3", *both],
        ["--nodes=1", "--nodelist=a", "--ntasks=1", *both],
    )
    assert asked[-len([*one, ":", *other]) :] == [*one, ":", *other]
    assert {"--begin=1970-01-02T00:01:00"} < set(asked)
    assert any(word.startswith("--dependency=afterany:") for word in asked)
    assert (told, hosts) == (["--het-group=0-1", "./train.sh", "first", "1", "60"], None)
    assert "--begin=1970-01-02T00:02:00" in third[0]
    assert not any(word.startswith("--dependency") for word in third[0])


@pytest.mark.parametrize("target_format", ["slurm", "kueue"])
@pytest.mark.parametrize("full", NAMES)
def test_schedules_come_back(full, target_format, tmp_path):
    instance, schedule = ddlopt.load(full), instances.best(full)
    file = tmp_path / "plan"
    file.write_text(export_plan(instance, schedule, target_format))
    assert import_plan(instance, file) == schedule


def test_every_run_of_the_library_is_submitted_once(submitted):
    instance, schedule = ddlopt.load(NAMES[0]), instances.best(NAMES[0])
    jobs = submitted(export_plan(instance, schedule, "slurm"))
    told = {int(words[-2]): words[-3] for _, words, _ in jobs}
    assert told == {place: instance.jobs[run.job].name for place, run in enumerate(schedule.runs)}


@pytest.mark.parametrize("hostile", HOSTILE)
def test_slurm_gets_a_name_as_one_word(submitted, hostile, tmp_path):
    instance, schedule = small([hostile])
    text = export_plan(instance, schedule, "slurm")
    jobs = submitted(text)
    assert [words[-3:] for _, words, _ in jobs] == [[hostile, "0", "60"], [hostile, "1", "60"]]
    assert all("\n" not in word for asked, *_ in jobs for word in asked)
    assert not os.path.exists("/tmp/ddlopt-was-here")  # noqa: PTH110
    file = tmp_path / "plan"
    file.write_text(text)
    assert import_plan(instance, file) == schedule


@pytest.mark.parametrize("hostile", ["fine", *HOSTILE])
def test_kueue_has_windows_widths_and_servers(hostile):
    yaml = pytest.importorskip("yaml")
    instance, schedule = small([hostile], {"gpu": 1.0, "gpu share": 0.5})
    first, second = yaml.safe_load_all(export_plan(instance, schedule, "kueue", hosts=["a", "b", "c"], queue="mine"))
    assert (first["kind"], first["metadata"]["name"]) == ("JobSet", "run-0")
    told = first["metadata"]["annotations"]
    assert told["ddlopt/job"] == hostile
    assert [told[f"ddlopt/{each}"] for each in ("start-s", "end-s", "width")] == ["0", "60", "6"]
    assert told["ddlopt/each-worker-also-takes"] == "0.5 gpu share"
    labels = {"kueue.x-k8s.io/queue-name": "mine", "kueue.x-k8s.io/max-exec-time-seconds": "60"}
    assert first["metadata"]["labels"] == labels
    specs = [each["template"]["spec"] for each in second["spec"]["replicatedJobs"]]
    pods = [spec["template"]["spec"] for spec in specs]
    assert second["metadata"]["annotations"]["ddlopt/after"] == "run-0"
    assert [pod["nodeSelector"]["kubernetes.io/hostname"] for pod in pods] == ["c", "a"]
    assert [(spec["parallelism"], spec["completions"]) for spec in specs] == [(3, 3), (1, 1)]
    env = [{each["name"]: each["value"] for each in pod["containers"][0]["env"]} for pod in pods]
    assert [each["DDLOPT_FIRST_RANK"] for each in env] == ["0", "3"]
    assert {each["DDLOPT_JOB"].replace("$$", "$") for each in env} == {hostile}
    assert pods[0]["containers"][0]["resources"] == {"limits": {"nvidia.com/gpu": "1"}}


REFUSED = [
    ({"hosts": "a,b"}, "hosts names 2 servers, but there are 3"),
    ({"hosts": "a,b,b"}, "hosts names 'b' twice"),
    ({"hosts": ["a", "b", "$(id)"]}, "hosts names '$(id)'; a name of a host has letters"),
    ({"hosts": "a,b,-c"}, "hosts names '-c'"),
    ({"hosts": 3}, "hosts is 3; give the names of the servers"),
    ({"hosts": ["a", "b", 3]}, "give the names of the servers"),
]


@pytest.mark.parametrize("target_format", ["slurm", "kueue"])
@pytest.mark.parametrize(("options", "says"), REFUSED)
def test_hosts_that_are_refused(target_format, options, says):
    with one_line(OptionError, says):
        export_plan(*small(["a"]), target_format, **options)


def test_names_that_kubernetes_refuses():
    for option, bad in (("queue", "My Queue"), ("queue", 3), ("image", "a b"), ("image", "$(id)")):
        with one_line(OptionError, f"{option} is {bad!r}"):
            export_plan(*small(["a"]), "kueue", **{option: bad})


def test_what_no_queue_can_do():
    with one_line(SolutionError, "holds a NUL"):
        export_plan(*small(["a\0b"]), "slurm")
    with one_line(OptionError, "slot_s of 'mine' is 0.5; queues know whole seconds"):
        export_plan(*small(["a"], slot_s=0.5), "slurm")
    with one_line(OptionError, "too long for a queue"):
        export_plan(*small(["a"], slot_s=1e12), "kueue")
