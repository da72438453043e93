"""The command line on scheduling instances: from a trace or generator to a checked schedule and its picture."""

import csv
import io
import json

import pytest

import ddlopt

TINY = "scheduling/tiny-capped"


def test_from_a_generator_to_a_checked_schedule(call, tmp_path):
    instance, schedule, picture = (tmp_path / name for name in ("own.json", "schedule.json", "gantt.png"))
    size = ("--jobs", 4, "--slots", 5, "--set", "gpus=4", "--seed", 3, "-o", instance)
    assert call("generate", "scheduling", "--kind", "elastic", *size)[0] == 0
    code, out, _ = call("solve", instance, "--method", "gadget", "--out", schedule, "--plot", picture, "--json")
    assert code == 0
    result = json.loads(out)
    assert (result["sense"], result["unit"], result["checked"]) == ("maximize", "", True)
    assert result["bound"] >= result["objective"] > 0
    code, out, _ = call("check", instance, schedule, "--exact", "--json")
    assert code == 0
    assert json.loads(out)["objective"] == pytest.approx(result["objective"], rel=1e-9)
    assert picture.stat().st_size > 5000


def test_comparison_as_csv(call):
    code, out, _ = call("compare", TINY, "--methods", "time-indexed,gadget,sjf-bco,optimus,fifo", "--csv")
    assert code == 0
    rows = {row["method"]: row for row in csv.DictReader(io.StringIO(out))}
    assert list(rows) == ["time-indexed", "gadget", "sjf-bco", "optimus", "fifo"]
    best = float(rows["time-indexed"]["objective"])
    assert rows["time-indexed"]["status"] == "optimal"
    assert all(float(row["objective"]) <= best * (1 + 1e-9) for row in rows.values())
    assert all(float(row["bound"]) >= best * (1 - 1e-9) for row in rows.values())


def test_show_says_what_is_known(call):
    code, out, _ = call("show", TINY)
    assert code == 0
    assert "by default" in out
    assert "exact" in out


def test_a_spoilt_schedule_is_told_apart(call, tmp_path):
    solution = ddlopt.solve(TINY, "fifo").solution
    first, *others = solution.runs
    late = first.model_copy(update={"slots": 99})
    path = tmp_path / "late.json"
    path.write_text(solution.model_copy(update={"runs": (late, *others)}).to_json())
    code, out, _ = call("check", TINY, path)
    assert code == 1
    assert out.startswith("deadline_is_kept at runs[0]")


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"max_workers": 99}, "max_workers is 99, but the cluster holds 4"),
        ({"arrival": 2, "deadline": 1}, "deadline is 1, but the arrival is 2"),
        ({"minibatches": -5}, "minibatches: Input should be greater than 0 (got -5)"),
        ({"demand": {"tpu": 1}}, "demand names 'tpu', but the servers have gpu"),
    ],
)
def test_bad_jobs_are_one_line(call, tmp_path, change, says):
    data = ddlopt.load(TINY).model_dump(mode="json")
    data["jobs"][1] |= change
    path = tmp_path / "bad.json"
    path.write_text(json.dumps(data))
    code, out, err = call("solve", path)
    assert (code, out) == (2, "")
    assert says in err
    assert "jobs[1]" in err
    assert err.count("\n") == 1


def test_a_server_without_links_is_one_line(call, tmp_path):
    data = ddlopt.load("scheduling/tiny-star").model_dump(mode="json")
    data["network"]["links"] = data["network"]["links"][:-1]
    path = tmp_path / "bad.json"
    path.write_text(json.dumps(data))
    code, out, err = call("solve", path)
    assert (code, out) == (2, "")
    assert "network does not connect server" in err
    assert err.count("\n") == 1
