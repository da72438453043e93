"""The command line on co-design instances: generated, compared, drawn, checked, and refused where they are wrong."""

import csv
import io
import json

import pytest

import ddlopt

OPTIMAL, HEURISTIC = "joint", ("alternating", "alternating-exact", "data-parallel")
TINY = "tiny-tables-n4-d2"


def test_from_a_generator_to_a_checked_plan(call, tmp_path):
    instance, plan, picture = (tmp_path / name for name in ("own.json", "plan.json", "picture.png"))
    options = ["--set", "job=vgg16", "--set", "servers=4", "--set", "degree=2"]
    assert call("generate", "codesign", "--kind", "job", *options, "-o", instance) == (0, "", "")
    code, out, _ = call(
        "solve", instance, "--out", plan, "--plot", picture, "--json", "--time-limit", "20", "--gap", "1e-3"
    )
    assert code == 0
    result = json.loads(out)
    assert result["checked"]
    assert result["bound"] <= result["objective"]
    code, out, _ = call("check", instance, plan, "--exact", "--json")
    assert code == 0
    assert json.loads(out)["objective"] == pytest.approx(result["objective"], rel=1e-9)
    assert picture.stat().st_size > 5000


def test_comparison_as_csv(call):
    methods = [OPTIMAL, *HEURISTIC, "ideal-switch"]
    code, out, _ = call("compare", f"codesign/{TINY}", "--methods", ",".join(methods), "--csv", "--time-limit", "30")
    assert code == 0
    rows = {row["method"]: row for row in csv.DictReader(io.StringIO(out))}
    assert list(rows) == methods
    best = rows[OPTIMAL]
    assert best["status"] == "optimal"
    for name in HEURISTIC:
        assert float(rows[name]["objective"]) >= float(best["objective"]) * (1 - 1e-9)
        assert float(rows[name]["bound"]) <= float(best["objective"]) * (1 + 1e-9)
    assert rows["ideal-switch"]["status"] == "reference"


def test_show_tells_the_sizes(call):
    code, out, _ = call("show", f"codesign/{TINY}")
    assert code == 0
    assert "layers" in out
    assert "None" not in out


def spoilt(change):
    data = json.loads(ddlopt.load(f"codesign/{TINY}").to_json())
    change(data)
    return data


BAD = {
    "no strategies": (lambda d: d["layers"][0].update(strategies=[]), "has no strategies; give at least one"),
    "negative time": (lambda d: d["layers"][0]["strategies"][0].update(measured_s=-1), "greater than or equal to 0"),
    "cycle": (lambda d: d["edges"].extend(_cycle(d)), "the graph of layers is cyclic: '"),
    "layout": (lambda d: d["layouts"][0]["servers"].pop(), "blocks need"),
    "groups": (lambda d: d["group_sets"][0][0].reverse(), "in increasing order"),
    "degree": (lambda d: d.update(degree=9), "use degree <= 3"),
}


def _cycle(data):
    """An edge back along one between layers that both read something."""
    reads = [all(strategy["reads"] is not None for strategy in layer["strategies"]) for layer in data["layers"]]
    source, target = next(edge for edge in data["edges"] if reads[edge[0]] and reads[edge[1]])
    return [[target, source]]


@pytest.mark.parametrize("case", BAD)
def test_bad_input_is_one_line(call, tmp_path, case):
    change, line = BAD[case]
    file = tmp_path / "bad.json"
    file.write_text(json.dumps(spoilt(change)))
    code, out, err = call("solve", file)
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert line in err


@pytest.mark.parametrize("method", ["joint", "alternating", "joint-milp", "ideal-switch"])
def test_too_little_memory_is_infeasible_with_the_layer_and_the_bytes(call, tmp_path, method):
    def shrink(data):
        data["device"]["memory_bytes"] = 1.0
        data["layers"][0]["strategies"] = [
            strategy | {"memory_bytes": 3.0} for strategy in data["layers"][0]["strategies"]
        ]

    data = spoilt(shrink)
    file = tmp_path / "large.json"
    file.write_text(json.dumps(data))
    code, out, err = call("solve", file, "--method", method, "--json")
    assert "Traceback" not in err
    assert code == 1
    result = json.loads(out)
    assert result["status"] == "infeasible"
    assert f"layer '{data['layers'][0]['name']}'" in result["message"]
    assert "2 bytes are missing" in result["message"]
