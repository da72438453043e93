"""The command line on compression instances: generated, compared, drawn, checked, and refused where they are wrong."""

import csv
import io
import json

import pytest

import ddlopt

KINDS = {
    "sfb-network": ["--set", "model=vgg16", "--set", "batch=4"],
    "network": ["--set", "model=vgg16", "--set", "nodes=2"],
    "levels-random": ["--set", "gradients=6"],
}


@pytest.mark.parametrize("kind", KINDS)
def test_from_a_generator_to_a_checked_answer(call, tmp_path, kind):
    instance, answer, picture = (tmp_path / name for name in ("own.json", "answer.json", "picture.png"))
    assert call("generate", "compression", "--kind", kind, *KINDS[kind], "-o", instance) == (0, "", "")
    code, out, _ = call("solve", instance, "--out", answer, "--plot", picture, "--json")
    assert code == 0
    result = json.loads(out)
    assert (result["status"], result["checked"]) == ("optimal", True)
    code, out, _ = call("check", instance, answer, "--exact", "--json")
    assert code == 0
    assert json.loads(out)["objective"] == pytest.approx(result["objective"], rel=1e-9)
    assert picture.stat().st_size > 5000


@pytest.mark.parametrize(
    ("name", "methods"),
    [
        ("hipress-vgg19-n16-budget", "exact,espresso,secopa,lgreco,none"),
        ("sfb-vgg16-b4-w16-25g", "min-cut,milp,poseidon,tag"),
    ],
)
def test_comparison_as_csv(call, name, methods):
    code, out, _ = call("compare", f"compression/{name}", "--methods", methods, "--csv")
    assert code == 0
    rows = {row["method"]: row for row in csv.DictReader(io.StringIO(out))}
    assert list(rows) == methods.split(",")
    first = rows[methods.split(",")[0]]
    assert first["status"] == "optimal"
    assert all(float(row["objective"]) >= float(first["objective"]) * (1 - 1e-9) for row in rows.values())
    assert all(float(row["bound"]) <= float(first["objective"]) * (1 + 1e-9) for row in rows.values())


def test_show_names_the_options_of_a_menu(call):
    code, out, _ = call("show", "compression/measured-digits-w8-1g")
    assert code == 0
    assert " 8: 9 (none, fp16, top_k 10 %, top_k 1 %, …); 11 (none, fp16" in out
    assert "cluster.intra_bandwidth_bytes_per_s  125 MB/s (1 Gb/s)" in out
    assert "None" not in out


@pytest.mark.parametrize("solution", [False, True])
def test_the_schema_tells_the_problems_apart(call, solution):
    code, out, _ = call("schema", "compression", *(["--solution"] if solution else []))
    assert code == 0
    assert set(json.loads(out)["discriminator"]["mapping"]) == {"sfb", "timeline", "levels"}


def spoilt(name, change):
    data = json.loads(ddlopt.load(f"compression/{name}").to_json())
    change(data)
    return data


BAD = {
    "unknown compressor": ("measured-digits-w8-1g", lambda d: d["menus"][0][1].update(compressor="zip"), "compressor"),
    "ratio": ("measured-digits-w8-1g", lambda d: d["menus"][1][2].update(ratio=1.5), "less than or equal to 1"),
    "rank": ("measured-digits-w8-1g", lambda d: d["menus"][1][-1].update(rank=11), "its rank is at most 10"),
    "order": ("measured-digits-w8-1g", lambda d: d["gradients"][3].update(ready_s=0), "in the order in which"),
    "cycle": ("sfb-random-n60", lambda d: d["tensors"].append(_back(d)), "tensors form a cycle"),
    "budget": ("levels-random-i20", lambda d: d.update(error_budget=1e-9), "but no choice of levels has less than"),
    "problem": ("levels-random-i20", lambda d: d.update(problem="ranks"), "problem is 'ranks'; use one of"),
}


def _back(data):
    """A tensor from a consumer to its producer."""
    tensor = next(each for each in data["tensors"] if each["consumers"])
    return {"producer": tensor["consumers"][0], "consumers": [tensor["producer"]], "size_bytes": 1.0}


@pytest.mark.parametrize("case", BAD)
def test_bad_input_is_one_line(call, tmp_path, case):
    name, change, line = BAD[case]
    file = tmp_path / "bad.json"
    file.write_text(json.dumps(spoilt(name, change)))
    code, out, err = call("solve", file)
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert line in err


def test_a_time_budget_that_nothing_keeps(call, tmp_path):
    data = spoilt("levels-gpt2-qsgd-error", lambda d: d.update(time_budget_s=1e-3))
    file = tmp_path / "late.json"
    file.write_text(json.dumps(data))
    code, out, err = call("solve", file, "--json")
    assert "Traceback" not in err
    assert code == 1
    assert json.loads(out)["status"] == "infeasible"
    assert "0.001" in json.loads(out)["message"]
