"""What `list` and `show` tell, what the shell completes, and that none of it waits for what it does not need."""

import json
import subprocess
import sys

import pytest
import typer
from volume import slow

import ddlopt
from ddlopt.cli import run
from ddlopt.cli.shared import completion
from ddlopt.instances import index
from ddlopt.solvers import catalogue
from ddlopt.solvers.options import options_of, told

TINY = "topology/tiny-n4-d2"
HEAVY = ("cvxpy", "highspy", "matplotlib", "networkx", "numba", "pandas", "pyomo", "rustworkx", "scipy", "sympy")


def listed(call, *arguments):
    code, out, err = call("list", *arguments, "--json")
    assert (code, err) == (0, "")
    return json.loads(out)


# list -----------------------------------------------------------------------------------------------------------------


def test_one_line_a_problem(call):
    code, out, _ = call("list")
    assert code == 0
    head, _, *lines, foot = [line.split() for line in out.splitlines() if line.strip()]
    assert (head[0], foot[0]) == ("problem", "Instances:")
    rows = {words[0]: words for words in lines}
    for name, problem in index.read().problems.items():
        own = [each for each in index.read().instances.values() if each.problem == name]
        assert rows[name][1:-3] == problem.title.split()
        assert rows[name][-3:-1] == [str(len(own)), str(sum(each.proven for each in own))]
    assert len(lines) == len(index.read().problems)


def test_a_family_or_a_problem_or_a_problem_by_its_own_name(call):
    assert {each["name"] for each in listed(call, "topology")["instances"]} == set(ddlopt.names("topology"))
    assert {each["problem"] for each in listed(call, "topology")["instances"]} == {"topology", "topology/collective"}
    some = [each["name"] for each in listed(call, "gossip/weights")["instances"]]
    assert some == [each["name"] for each in listed(call, "weights")["instances"]]
    assert set(some) < set(ddlopt.names("gossip"))


def test_evidence_is_told_of_what_is_proven(call):
    found = {each["name"]: each["evidence"] for each in listed(call, "scheduling")["instances"]}
    everything = index.read().instances
    assert {name for name, told in found.items() if told is not None} == {
        name for name in found if everything[name].proven
    }
    assert found["scheduling/tiny-fair"] == "exact certificate"
    assert found["scheduling/tiny-shared"] == "up to floating point"
    out = call("solve", "scheduling/tiny-shared", "--method", "fair-shares")[1]
    assert "best known: 2.29, optimal (up to floating point)\n" in out


def test_filters_leave_what_they_say(call):
    everything = index.read().instances
    for option, keeps in (
        (["--open"], lambda each: not each.proven),
        (["--proven"], lambda each: each.proven),
        (["--max-size", "6"], lambda each: each.size <= 6),
        (["--open", "--max-size", "12"], lambda each: not each.proven and each.size <= 12),
    ):
        found = [each["name"] for each in listed(call, *option)["instances"]]
        assert found
        assert sorted(found) == sorted(name for name, each in everything.items() if keeps(each))
    assert listed(call, "hot", "--open")["instances"] == []
    assert call("list", "hot", "--open")[:2] == (0, "no instance is like that\n")


def test_an_instance_says_what_is_known_of_it(call):
    (danoint,) = (each for each in listed(call, "topology")["instances"] if each["name"] == "topology/danoint")
    assert danoint["proven"] is True
    assert (danoint["size"], danoint["unit"], danoint["licence"]) == (8, "s", "Apache-2.0")
    assert danoint["objective"] == pytest.approx(65 + 2 / 3)


def test_methods_of_a_family_and_of_a_problem(call):
    of_family = [each["method"] for each in listed(call, "aggregation", "--methods")["methods"]]
    assert of_family == list(ddlopt.methods("aggregation"))
    of_problem = {each["method"] for each in listed(call, "aggregation/hot", "--methods")["methods"]}
    assert {"exact", "hot-prices"} <= of_problem
    assert "first-switch" not in of_problem
    everything = {(each["family"], each["method"]) for each in listed(call, "--methods")["methods"]}
    assert everything == {(family, name) for family in ddlopt.families() for name in ddlopt.methods(family)}


def test_methods_tell_their_options(call):
    methods = {each["method"]: each for each in listed(call, "topology", "--methods")["methods"]}
    assert methods["link-exchange"]["options"][0].items() >= {"name": "effort", "values": "number"}.items()
    variant = methods["topology-finder"]["options"][0]
    assert (variant["name"], variant["values"], variant["default"]) == ("variant", "paper, released", "paper")
    assert methods["ocs-greedy"]["options"] == []
    assert "effort=1.0" in call("list", "topology", "--methods")[1]


def test_a_method_is_shown_with_what_may_be_written(call):
    code, out, _ = call("show", "gossip/exchange-rule:rule=fixed-period")
    assert code == 0
    assert out.startswith("gossip/exchange-rule:rule=fixed-period: ")
    assert "norm-threshold, speed-rule" in " ".join(out.split())
    (shown,) = json.loads(call("show", "label-setting", "--json")[1])["methods"]
    widths = shown["options"][0]
    assert (widths["values"], widths["default"]) == ("[whole number, …]", "[100,100,300,1000,3000,10000]")
    assert widths["meaning"] == "Labels of a gradient that the passes over a part keep"
    assert {each["family"] for each in json.loads(call("show", "expander", "--json")[1])["methods"]} == {
        "topology", "codesign",
    }  # fmt: skip
    assert "It has no options." in call("show", "ocs-greedy")[1]


@pytest.mark.parametrize("family", ddlopt.families())
def test_what_is_told_of_an_option_can_be_written(family):
    for entry in catalogue.own_entries(family):
        for option in told(entry.make("highs")):
            if option.default != "none":
                method = catalogue.method(f"{entry.name}:{option.name}={option.default}", family)
                assert options_of(method) == options_of(entry.make("highs")), (entry.name, option)


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["magic"], "there is no family 'magic'; there are: topology, scheduling, "),
        (["--open", "--proven"], "--open and --proven leave nothing"),
        (["--methods", "--open"], "--methods lists no instances"),
        (["--max-size", "few"], "'--max-size'"),
    ],
)
def test_a_wrong_list_is_one_line(refused, arguments, says):
    err = refused("list", *arguments)
    assert says in err


# show -----------------------------------------------------------------------------------------------------------------


def test_show_tells_sizes_totals_ranges_and_what_is_known(call):
    rows = {line[:28].strip(): line[28:].strip() for line in call("show", "topology/danoint")[1].splitlines()}
    assert rows["problem"] == "topology: links, rings and routes of one training job"
    assert rows["limited by"] == "ports of servers, bandwidth of links"
    assert rows["traffic_bytes"] == "8 × 8: 56 of 64 entries, 5 B to 15 B, 552 B in all"
    assert rows["best known"].startswith("65.6667 s by branch-and-bound")
    assert rows["gap"] == "0.01 %"
    assert "branch-and-bound" in rows["exact"].split(", ")
    assert "topology-finder" in rows["heuristics"].split(", ")
    rows = {line[:37].strip(): line[37:].strip() for line in call("show", "deployment/tiny-g4-m3-s5")[1].splitlines()}
    assert rows["operators.gradient_bytes"] == "0 B to 10.9 MB, 22.6402 MB in all"
    operators = ddlopt.load("deployment/tiny-g4-m3-s5").operators
    times = [time for operator in operators for time in operator.times_s["fast"]]
    assert rows["operators.times_s"].startswith(f"fast {1e6 * min(times):.6g} µs to {1e3 * max(times):.6g} ms")


def test_show_has_the_fields_as_json(call):
    data = json.loads(call("show", TINY, "--json")[1])
    instance = ddlopt.load(TINY)
    assert data["fields"] == json.loads(instance.to_json())
    assert (data["digest"], data["problem"], data["size"]) == (instance.digest, "topology", 4)
    assert data["objective"] == data["bound"] == 11.5
    assert data["gap"] == 0


def test_an_instance_of_ones_own_is_shown_like_the_librarys(call, tmp_path):
    file = tmp_path / "mine.json"
    file.write_text(ddlopt.load(TINY).model_copy(update={"name": "mine"}).to_json())
    mine, theirs = (json.loads(call("show", each, "--json")[1]) for each in (file, TINY))
    assert (mine["methods"], mine["default_method"]) == (theirs["methods"], theirs["default_method"])
    assert (mine["objective"], mine["licence"], mine["bound"], mine["bound_by"]) == (None, None, 11.5, "combinatorial")


# Completion -----------------------------------------------------------------------------------------------------------


def context(**params):
    made = typer.Context(typer.main.get_command(typer.Typer(callback=lambda: None, invoke_without_command=True)))
    made.params.update(params)
    return made


def test_names_are_completed_with_and_without_their_family(tmp_path):
    assert completion.instances(context(), "topology/dan") == ["topology/danoint"]
    assert completion.instances(context(), "dano") == ["topology/danoint"]
    assert completion.instances(context(), "") == list(ddlopt.names())
    (tmp_path / "a.json").touch()
    (tmp_path / "a.txt").touch()
    (tmp_path / "folder").mkdir()
    assert completion.instances(context(), f"{tmp_path}/") == [f"{tmp_path}/a.json", f"{tmp_path}/folder/"]
    assert completion.instances(context(), f"{tmp_path}/nowhere/") == []


def test_methods_are_completed_after_the_last_comma():
    assert completion.methods(context(name="topology/danoint"), "bra") == ["branch-and-bound"]
    names = ["topology/danoint"]
    assert completion.methods(context(names=names), "exact,link") == ["exact,link-exchange"]
    assert completion.methods(context(names=names), "hot") == []
    assert "hot-prices" in completion.methods(context(), "hot")


def test_families_and_problems_are_completed():
    assert completion.problems("gossip/p") == ["gossip/period"]
    assert completion.families("") == list(ddlopt.families())


def test_the_shell_asks_and_is_answered(monkeypatch, capsys):
    monkeypatch.setenv("_DDLOPT_COMPLETE", "complete_bash")
    monkeypatch.setenv("COMP_WORDS", "ddlopt show topology/dan")
    monkeypatch.setenv("COMP_CWORD", "2")
    with pytest.raises(SystemExit):
        run([])
    assert capsys.readouterr().out.split() == ["topology/danoint"]


# What is imported -----------------------------------------------------------------------------------------------------

LOADS = f"""
import sys
from ddlopt.cli import run
code = run(sys.argv[1:])
print(code, *(name for name in {HEAVY} if name in sys.modules), file=sys.stderr)
"""


@pytest.mark.parametrize(
    ("arguments", "needed"),
    [
        (["list"], set()),
        slow(["list", "topology"], set()),
        slow(["show", "topology/danoint"], set()),
        (["check", TINY, "a.json"], set()),
        (["solve", TINY], {"numba", "scipy"}),
    ],
    ids=["list", "list topology", "show", "check", "solve"],
)
def test_nothing_heavy_is_imported_that_is_not_used(tmp_path, arguments, needed):
    if "check" in arguments:
        (tmp_path / "a.json").write_text(ddlopt.solve(TINY, "topology-finder").solution.to_json())
    command = [sys.executable, "-I", "-c", LOADS, *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=tmp_path)
    code, *loaded = done.stderr.splitlines()[-1].split()
    assert code == "0"
    assert set(loaded) <= needed
