"""The command line on deployments: generated, compared, drawn, checked, and refused where they are wrong."""

import csv
import io
import json

import pytest

import ddlopt

TINY = "tiny-g2-m2-s1"
HEURISTICS = ("tag", "plan-search", "mcmc", "data-parallel", "heft", "m-etf")


def test_from_a_generator_to_a_checked_plan(call, tmp_path):
    instance, plan, picture = (tmp_path / name for name in ("own.json", "plan.json", "picture.png"))
    options = ["--set", "model=vgg19", "--set", "groups=4", "--set", "devices_of=two-machines", "--set", "batch=16"]
    assert call("generate", "deployment", "--kind", "network", *options, "-o", instance) == (0, "", "")
    code, out, _ = call(
        "solve", instance, "--method", "plan-search", "--out", plan, "--plot", picture, "--json", "--time-limit", "5"
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
    methods = ["exact", *HEURISTICS]
    code, out, _ = call("compare", f"deployment/{TINY}", "--methods", ",".join(methods), "--csv", "--time-limit", "30")
    assert code == 0
    rows = {row["method"]: row for row in csv.DictReader(io.StringIO(out))}
    assert list(rows) == methods
    best = float(rows["exact"]["objective"])
    for name in HEURISTICS:
        assert float(rows[name]["objective"]) >= best * (1 - 1e-9)
        assert float(rows[name]["bound"]) <= best * (1 + 1e-9)


def test_show_tells_the_problem_and_the_size(call):
    code, out, _ = call("show", f"deployment/{TINY}")
    assert code == 0
    assert "plan" in out
    assert "None" not in out


def spoilt(change):
    data = json.loads(ddlopt.load(f"deployment/{TINY}").to_json())
    change(data)
    return data


BAD = {
    "problem": (lambda d: d.update(problem="where"), "problem is 'where'; use one of: partition, plan, strategies"),
    "cycle": (
        lambda d: d["tensors"].append({"producer": 3, "consumers": [0], "size_bytes": 1}),
        "the operators form a cycle: ",
    ),
    "no bandwidth": (
        lambda d: d.update(bandwidth_bytes_per_s=[[0, 0], [1, 0]]),
        "device group 0 ('fast') has no bandwidth to device group 1",
    ),
    "fits nowhere": (
        lambda d: d["operators"][3].update(resident_bytes=1e18),
        "operator 'backward.0' of group 0 keeps 1e+18 bytes, but no device has more than",
    ),
    "times": (lambda d: d["operators"][0]["times_s"].clear(), "times_s"),
    "shares": (lambda d: d.update(shares=[1, 2, 0.25, 0.125]), "shares has 2 after 1"),
    "group": (lambda d: d["operators"][0].update(group=7), "no operator belongs to group"),
    "consumer": (lambda d: d["tensors"][0].update(consumers=[99]), "names operator 99, but there are 4 operators"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_input_is_one_line(call, tmp_path, case):
    change, line = BAD[case]
    file = tmp_path / "bad.json"
    file.write_text(json.dumps(spoilt(change)))
    code, out, err = call("solve", file)
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert line in err


def test_a_plan_for_other_devices_is_refused(call, tmp_path):
    plan = {
        "family": "deployment",
        "problem": "plan",
        "instance": TINY,
        "groups": [{"device_groups": [5], "mode": "all_reduce"}, {"device_groups": [0], "mode": "all_reduce"}],
    }
    file = tmp_path / "plan.json"
    file.write_text(json.dumps(plan))
    code, out, err = call("check", f"deployment/{TINY}", file)
    assert code != 0
    assert "device_group_exists at groups[0].device_groups: 5 against 2" in out
    assert not err


@pytest.mark.slow
def test_methods_of_the_other_problems_refuse_plans(call):
    plans = {"exact", "brute-force", "makespan-bound", "disjunctive", *HEURISTICS}
    others = [name for name in ddlopt.methods("deployment") if name.split("-sfb")[0] not in plans and "m-" not in name]
    refused = 0
    for name in others:
        code, _, err = call("solve", f"deployment/{TINY}", "--method", name, "--time-limit", "5")
        if code:
            refused += 1
            assert err.count("\n") == 1
            assert "does not cover" in err
    assert refused > 3
