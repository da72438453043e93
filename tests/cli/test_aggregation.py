"""The command line on aggregation: generated, compared, drawn, checked, and refused where it is wrong."""

import csv
import io
import json

import pytest

import ddlopt

TREE = "aggregation/tree-soar-n7-k2"


def rows(call, *words):
    code, out, _ = call("compare", *words, "--csv", "--time-limit", "30")
    assert code == 0
    return {row["method"]: row for row in csv.DictReader(io.StringIO(out))}


def test_the_published_tree(call):
    found = rows(call, TREE, "--methods", "soar,milp,level,top,max")
    objectives = {method: float(row["objective"]) for method, row in found.items()}
    assert objectives == {"soar": 20, "milp": 20, "level": 21, "top": 27, "max": 24}
    assert found["soar"]["status"] == found["milp"]["status"] == "optimal"


@pytest.mark.parametrize(
    "name",
    [
        *("hot-tiny-p9-s2", "registers-tiny-n8-r3", "tree-tiny-n6-k2", "graph-tiny-congestion"),
        *("slots-tiny-n3", "table-tiny-n8"),
    ],
)
def test_every_problem_is_solved_drawn_and_checked(call, tmp_path, name):
    answer, picture = tmp_path / "answer.json", tmp_path / "picture.png"
    words = ("solve", f"aggregation/{name}", "--out", answer, "--plot", picture, "--json", "--time-limit", "20")
    code, out, _ = call(*words)
    assert code == 0
    result = json.loads(out)
    assert result["checked"]
    assert result["status"] == "optimal"
    code, out, _ = call("check", f"aggregation/{name}", answer, "--exact", "--json")
    assert code == 0
    assert json.loads(out)["objective"] == pytest.approx(result["objective"], rel=1e-9)
    assert picture.stat().st_size > 5000


def test_from_a_generator_to_heuristics(call, tmp_path):
    own = tmp_path / "own.json"
    options = ["--set", "k=4", "--set", "jobs=2", "--set", "workers=3", "--seed", "5"]
    assert call("generate", "aggregation", "--kind", "fat-tree", *options, "-o", own) == (0, "", "")
    found = rows(call, own, "--methods", "exact,graph-search,none,level,top,max,first-switch")
    best = float(found["exact"]["objective"])
    assert all(float(row["objective"]) >= best * (1 - 1e-9) for row in found.values())
    assert all(float(row["bound"]) <= best * (1 + 1e-9) for row in found.values())


def spoilt(name, change):
    data = json.loads(ddlopt.load(f"aggregation/{name}").to_json())
    change(data)
    return data


BAD = {
    "problem": (
        TREE.partition("/")[2],
        lambda d: d.update(problem="where"),
        "problem is 'where'; use one of: graph, hot, registers, slots, table, tree",
    ),
    "cycle": (TREE.partition("/")[2], lambda d: d.update(parents=[1, 2, 0, 1, 1, 2, 2]), "cycle"),
    "packet": ("registers-tiny-n8-r3", lambda d: d.update(entries=4), "entries is 4"),
    "capacity": ("registers-tiny-n8-r3", lambda d: d.update(capacity=2), "8"),
    "link": ("graph-tiny-congestion", lambda d: d["links"].append({"ends": [0, 99], "bandwidth_bytes_per_s": 1}), "99"),
    "frequency": ("hot-tiny-p9-s2", lambda d: d["jobs"][0]["frequencies"].__setitem__(2, 1.5), "1.5"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_input_is_one_line(call, tmp_path, case):
    name, change, line = BAD[case]
    file = tmp_path / "bad.json"
    file.write_text(json.dumps(spoilt(name, change)))
    code, out, err = call("solve", file)
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert line in err


def test_a_switch_without_memory_is_named(call, tmp_path):
    file, plan = tmp_path / "tree.json", tmp_path / "plan.json"
    file.write_text(json.dumps(spoilt("tree-soar-n7-k2", lambda d: d.update(memory=[1, 1, 0, 1, 1, 1, 1]))))
    answer = {"family": "aggregation", "problem": "tree", "instance": "tree-soar-n7-k2", "switches": [[2]]}
    plan.write_text(json.dumps(answer))
    code, out, _ = call("check", file, plan)
    assert code == 1
    assert "memory" in out
    assert "right" in out


def test_a_broken_line_of_a_click_log_is_named(call, tmp_path):
    log = tmp_path / "clicks.ffm"
    log.write_text("1 0:1:1 1:7:1\n0 0:2:1 1\n")
    code, out, err = call("convert", log, "--from", "libffm", "--set", "problem=registers")
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert "line 2" in err
