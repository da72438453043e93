"""Columns of other people's traces: small files in the layouts of public ones, and mappings gone wrong."""

import json

import pytest
from refusals import one_line

import ddlopt
from ddlopt.cli import run
from ddlopt.instances import convert
from ddlopt.models.errors import InstanceError, OptionError

TRACES = {
    "pollux": "name,time,application,num_replicas,batch_size\nb-0,107,bert,6,384\nn-1,7310,ncf,1,32768\n",
    "tiresias": "job_id,num_gpu,submit_time,iterations,model_name,duration,interval\n0,6,107,606,vgg19,1800,30\n"
    "1,1,7310,133,vgg11,1080,23\n",
    "helios": "job_id,user,vc,gpu_num,cpu_num,node_num,state,submit_time,start_time,end_time,duration,queue\n"
    "7,u1,v,6,48,1,COMPLETED,2020-04-01 00:01:47,2020-04-01 00:01:47,2020-04-01 00:31:47,1800,0\n"
    "8,u1,v,0,48,1,COMPLETED,2020-04-01 00:02:00,2020-04-01 00:02:00,2020-04-01 00:31:47,1800,0\n"
    "9,u2,v,1,4,1,FAILED,2020-04-01 02:01:50,2020-04-01 02:01:50,2020-04-01 02:19:50,1080,0\n",
    "alibaba-2020": "j1,worker,6,Terminated,107.0,1907.0,600.0,29.2,100.0,T4\n"
    "j1,ps,1,Terminated,107.0,1907.0,600.0,29.2,,T4\n"
    "j2,tensorflow,1,Terminated,7310.0,8390.0,600.0,29.2,25.0,MISC\n"
    "j3,tensorflow,1,Running,7310.0,,600.0,29.2,25.0,MISC\n",
    "alibaba-2025": "instance_sn,role,app_name,cpu_request,cpu_limit,gpu_request,gpu_limit,creation_time,"
    "scheduled_time,deletion_time\ni0,HN,a,12,12,1,1,,,\ni1,HN,a,12,12,6,6,107.0,110.0,1907.0\n"
    "i2,CN,a,48,48,0,0,107.0,110.0,1907.0\ni3,HN,b,12,12,1,1,7310.0,7310.0,8390.0\n",
}


def written(tmp_path, text):
    path = tmp_path / "trace.csv"
    path.write_text(text, encoding="utf-8")
    return path


@pytest.mark.parametrize("layout", TRACES)
def test_public_traces_are_read_by_their_layouts(layout, tmp_path):
    instance = convert(written(tmp_path, TRACES[layout]), "jobs-csv", columns=layout)
    first, second = instance.jobs
    assert (first.max_workers, second.max_workers) == (6, 1)
    # 107 s and 7 310 s in slots of an hour, which are counted from the first arrival.
    assert (first.arrival, second.arrival) == (0, 2)
    speed = float(first.timing.minibatches_per_s(6))
    assert first.minibatches / speed == pytest.approx(1800)
    assert second.minibatches / float(second.timing.minibatches_per_s(1)) == pytest.approx(1080)
    assert f"jobs by columns {layout}" in instance.source
    left = {"helios": 1, "alibaba-2020": 2, "alibaba-2025": 2}.get(layout, 0)
    assert (f"left out {left} rows" in instance.source) == bool(left)
    assert ddlopt.solve(instance, "gadget").checked


def test_what_each_trace_has_besides(tmp_path):
    pai = convert(written(tmp_path, TRACES["alibaba-2020"]), "jobs-csv", columns="alibaba-2020")
    assert [job.demand["gpu"] for job in pai.jobs] == [1, 0.25]
    assert [job.name for job in pai.jobs] == ["j1", "j2"]
    headed = "job_name,task_name,inst_num,status,start_time,end_time,plan_cpu,plan_mem,plan_gpu,gpu_type\n"
    assert convert(written(tmp_path, headed + TRACES["alibaba-2020"]), "jobs-csv", columns="alibaba-2020") == pai
    pollux = convert(written(tmp_path, TRACES["pollux"]), "jobs-csv", columns="sia")
    assert [(job.min_workers, job.max_workers) for job in pollux.jobs] == [(1, 6), (1, 1)]
    assert "the middle of its class in Pollux's paper, which is synthetic" in pollux.source


def test_columns_of_any_file_by_name_expression_and_table(tmp_path):
    text = "id,sub time,begun,ended,cards,kind\n1,2024-05-01T10:00:00Z,10,3610,200,big\n"
    text += "2,2024-05-01 12:30,20,3620,100,small\n"
    mapping = {
        "name": "id",
        "arrival_s": "sub time",
        "duration_s": "(ended - begun) / 2 + -0.5 * 0",
        "workers": "cards / 100",
        "value": {"kind": {"big": 3, "small": 1.5}},
        "gradient_bytes": 1e8,
    }
    instance = convert(written(tmp_path, text), "jobs-csv", columns=mapping, start="2024-05-01 09:00", hours=6)
    first, second = instance.jobs
    assert (first.name, first.arrival, first.max_workers, first.utility.value) == ("1", 1, 2, 3)
    assert (second.name, second.arrival, second.max_workers, second.utility.value) == ("2", 3, 1, 1.5)
    assert first.timing.gradient_bytes == 1e8
    assert first.minibatches / float(first.timing.minibatches_per_s(2)) == pytest.approx(1800)


def test_jobs_with_one_name_are_told_apart(tmp_path):
    text = "job,t,d,n\nx,0,60,1\nx,10,60,1\ny,20,60,1\n"
    columns = "arrival_s=t,duration_s=d,workers=n"
    named = convert(written(tmp_path, text), "jobs-csv", columns=f"{columns},name=job")
    assert [job.name for job in named.jobs] == ["x row 2", "x row 3", "y"]
    unnamed = convert(written(tmp_path, text), "jobs-csv", columns=columns)
    assert [job.name for job in unnamed.jobs] == ["row 2", "row 3", "row 4"]


def test_a_layout_may_be_changed_on_the_command_line(tmp_path):
    path, out = written(tmp_path, TRACES["pollux"]), tmp_path / "jobs.json"
    command = ["convert", str(path), "--from", "jobs-csv", "--set", "columns=pollux,duration_s=batch_size * 2"]
    assert run([*command, "-o", str(out)]) == 0
    first, _ = ddlopt.load(out).jobs
    assert first.minibatches / float(first.timing.minibatches_per_s(6)) == pytest.approx(768)
    assert json.loads(out.read_text())["source"].startswith("trace.csv: jobs by columns pollux,duration_s=batch")


PLAIN = "t,d,n,app\n0,60,1,x\n"
LEAST = {"arrival_s": "t", "duration_s": "d", "workers": "n"}


@pytest.mark.parametrize(
    ("columns", "told"),
    [
        ("heleos", "there is no layout 'heleos'; there are: pollux, sia, tiresias, helios"),
        ("arrival_s=", "'arrival_s=' is no OURS=THEIRS"),
        ("", "'' is no OURS=THEIRS"),
        ("arival_s=t,duration_s=d,workers=n", "there is no column 'arival_s' of ours; there are: name, arrival_s"),
        (
            LEAST | {"arrival_s": "when"},
            "arrival_s is made of 'when', which the file has not; its header has: t, d, n, app",
        ),
        (LEAST | {"duration_s": "d - begin"}, "duration_s is made of 'begin', which the file has not"),
        (LEAST | {"duration_s": "d ** 2"}, "duration_s is 'd ** 2'; expected columns and numbers with + - * / and"),
        (LEAST | {"duration_s": "max(d, 2)"}, "expected columns and numbers with + - * /"),
        (LEAST | {"duration_s": "'d'"}, "expected columns and numbers with + - * /"),
        (LEAST | {"duration_s": "d +"}, "expected columns and numbers with + - * /"),
        (LEAST | {"duration_s": "(" * 500}, "expected columns and numbers with + - * /"),
        (LEAST | {"name": "app + t"}, "name is made of 'app + t', which the file has not"),
        (LEAST | {"workers": None}, "workers is None; expected a column, an expression"),
        (LEAST | {"workers": {"app": {"x": "two"}}}, "workers is {'app': {'x': 'two'}}; expected a column"),
    ],
)
def test_a_bad_mapping_is_told_in_a_line(columns, told, tmp_path):
    with one_line(OptionError, told):
        convert(written(tmp_path, PLAIN), "jobs-csv", columns=columns)


@pytest.mark.parametrize(
    ("text", "columns", "told"),
    [
        (PLAIN, {"arrival_s": "t", "workers": "n"}, "a column duration_s or minibatches is missing"),
        (PLAIN, LEAST | {"arrival_s": "app"}, "row 2, app is 'x'; expected a number, or a date such as"),
        (PLAIN, LEAST | {"workers": {"app": {"y": 2}}}, "row 2, app is 'x'; columns has a number for: y"),
        (PLAIN, LEAST | {"workers": "n * 1.5"}, "row 2, workers is '1.5'; expected a whole number"),
        (PLAIN, LEAST | {"duration_s": "d / 0"}, "none of its 1 rows has workers, a time of arrival and a length"),
        (PLAIN.replace("60", "1e999"), LEAST, "row 2, duration_s is 'inf'; expected a finite number"),
        (PLAIN.replace("app", "t"), LEAST, "column t is given twice"),
        (PLAIN, LEAST | {"demand_cpu": "4"}, "workers take cpu; say what the servers have"),
    ],
)
def test_a_bad_file_is_told_in_a_line(text, columns, told, tmp_path):
    with one_line(InstanceError, told):
        convert(written(tmp_path, text), "jobs-csv", columns=columns)


def test_a_window_without_jobs_and_a_start_that_is_no_time(tmp_path):
    path = written(tmp_path, PLAIN)
    with one_line(InstanceError, "no job arrives from"):
        convert(path, "jobs-csv", columns=LEAST, start="2024-05-01")
    with one_line(OptionError, "start is 'noon'; in this format it is a number of seconds"):
        convert(path, "jobs-csv", columns=LEAST, start="noon")
