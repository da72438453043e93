"""The command line on gossip: compared, drawn, checked, and refused where it is wrong."""

import csv
import io
import json

import pytest

import ddlopt

CVX = "cvx-n8-averaging"


def test_weights_side_by_side(call):
    methods = "fdla,fmmc,metropolis,max-degree,best-constant"
    code, out, _ = call("compare", f"gossip/{CVX}", "--methods", methods, "--csv", "--time-limit", "30")
    assert code == 0
    found = {row["method"]: round(float(row["objective"]), 4) for row in csv.DictReader(io.StringIO(out))}
    assert found == {
        "fdla": 0.6433,
        "fmmc": 0.681,
        "metropolis": 0.7743,
        "max-degree": 0.7793,
        "best-constant": 0.7119,
    }


@pytest.mark.parametrize(
    "name",
    [CVX, "path-n8-process", "ring-n8-half", "period-m8-step", "circulant-n9-d4-gap", "exchange-tiny-return-t12"],
)
def test_every_problem_is_solved_drawn_and_checked(call, tmp_path, name):
    answer, picture = tmp_path / "answer.json", tmp_path / "picture.png"
    words = ("solve", f"gossip/{name}", "--out", answer, "--plot", picture, "--json", "--time-limit", "20")
    code, out, _ = call(*words)
    assert code == 0
    result = json.loads(out)
    assert result["checked"]
    code, out, _ = call("check", f"gossip/{name}", answer, "--exact", "--json")
    assert code == 0
    assert json.loads(out)["objective"] == pytest.approx(result["objective"], rel=1e-9)
    assert picture.stat().st_size > 5000


BAD = {
    "problem": (CVX, {"problem": "where"}, "problem is 'where'; use one of: circulant, exchange, matchings, period"),
    "disconnected": (CVX, {"network": {"nodes": 4, "edges": [[0, 1], [2, 3]]}}, "the graph is disconnected"),
    "self-loop": (CVX, {"network": {"nodes": 2, "edges": [[0, 0]]}}, "edges[0] is a self-loop of node 0"),
    "budget": ("path-n8-process", {"budget": -1}, "budget is -1"),
    "budget of matchings": ("ring-n8-half", {"budget": -0.5}, "budget"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_input_is_one_line(call, tmp_path, case):
    name, change, line = BAD[case]
    file = tmp_path / "bad.json"
    file.write_text(json.dumps(json.loads(ddlopt.load(f"gossip/{name}").to_json()) | change))
    code, out, err = call("solve", file)
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert line in err


def test_a_matrix_that_is_not_symmetric(call, tmp_path):
    answer = tmp_path / "matrix.json"
    matrix = [[0.0] * 8 for _ in range(8)]
    matrix[0][3] = 0.2
    answer.write_text(json.dumps({"family": "gossip", "problem": "weights", "instance": CVX, "matrix": matrix}))
    code, out, err = call("check", f"gossip/{CVX}", answer)
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert "matrix[0][3] is 0.2, but matrix[3][0] is 0" in err
