"""Bad input: one clear line on standard error, exit code 2, nothing written."""

import json
from importlib.util import find_spec

import pytest

import ddlopt
from ddlopt.cli import run

TINY = "topology/tiny-n4-d2"


def written(tmp_path, name, text):
    path = tmp_path / name
    path.write_text(text)
    return path


def instance_with(**changes):
    return json.dumps({**ddlopt.load(TINY).model_dump(mode="json"), **changes})


@pytest.fixture(scope="module")
def tiny_solution():
    return ddlopt.solve(TINY, "topology-finder").solution.to_json()


@pytest.fixture
def refused(capsys, tmp_path):
    """Run a command line that must be refused; the one line it says."""

    def call(*arguments):
        before = sorted(file.name for file in tmp_path.iterdir())
        code = run([str(argument) for argument in arguments])
        out, err = capsys.readouterr()
        assert code == 2, err
        assert out == ""
        assert len(err.splitlines()) == 1, err
        assert err.startswith("ddlopt: ")
        assert sorted(file.name for file in tmp_path.iterdir()) == before
        return err

    return call


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["solv", TINY], "No such command 'solv'"),
        (["solve"], "Missing argument"),
        (["solve", "topology/danoin"], "danoint"),
        (["solve", "missing.json"], "missing.json"),
        (["solve", TINY, "--method", "magic"], "no method 'magic'; it has: exact, rings-and-routes, "),
        (["solve", TINY, "--method", "rings-and-routes", "--solver", "magic"], "magic"),
        (["solve", TINY, "--method", "circulant"], "circulant does not cover"),
        (["solve", TINY, "--time-limit", "nan"], "time limit must be a positive number of seconds, got nan"),
        (["solve", TINY, "--time-limit", "-1"], "time limit must be a positive number of seconds, got -1"),
        (["solve", TINY, "--time-limit", "soon"], "--time-limit"),
        (["solve", TINY, "--gap", "2"], "gap must be at least 0 and less than 1, got 2.0"),
        (["solve", TINY, "--gap", "nan"], "got nan"),
        (["solve", TINY, "--threads", "0"], "the number of threads must be a whole number of 1 to 1024, got 0"),
        (["solve", TINY, "--seed", "-1"], "seed is -1; it must be a whole number of 0 to"),
        (["solve", TINY, "--colour", "red"], "--colour"),
        (["solve", TINY, "--start", "missing.json"], "missing.json: cannot be read"),
        (["compare", TINY], "--methods"),
        (["compare", TINY, "--methods", ","], "',' names nothing"),
        (["compare", TINY, "--methods", "topology-finder,magic"], "no method 'magic'"),
        (["compare", TINY, "--methods", "ideal-switch", "--json", "--csv"], "cannot both"),
        (["compare", TINY, "--methods", "ideal-switch", "--plot", "a.bmp"], "must end in .png, .svg, .pdf"),
        (["check", TINY, "missing.json"], "missing.json: cannot be read"),
        (["list", "magic"], "no family 'magic'; there are: topology"),
        (["show", "magic"], "no instance or file 'magic'"),
        (["show", "gossip"], "it is a family: ddlopt list gossip has its instances"),
        (["solve", "gossip/weights"], "it is a problem: ddlopt list gossip/weights has its instances"),
        (
            ["export", TINY, "--formulation", "magic", "-o", "a.lp"],
            "no formulation 'magic'; methods that are: rings-and",
        ),
        (["certify", TINY, "-o", "nowhere/a.json"], "the folder nowhere does not exist"),
        (["solve", TINY, "-o", "nowhere/a.json"], "the folder nowhere does not exist"),
        (["generate", "gossip"], "Missing option '--kind'; those of gossip: matchings, weights, "),
        (["generate", "magic"], "no family 'magic'"),
        (["schema", "magic"], "no family 'magic'"),
        (["generate", "magic", "--kind", "random", "--servers", "4", "--degree", "2"], "no family 'magic'"),
        (["generate", "topology", "--kind", "magic", "--servers", "4", "--degree", "2"], "magic"),
        (["generate", "topology", "--kind", "random", "--servers", "1", "--degree", "1"], "servers is 1"),
        (["generate", "topology", "--kind", "random", "--servers", "4", "--degree", "4"], "degree is 4"),
        (["generate", "topology", "--kind", "random", "--servers", "4", "--degree", "0"], "degree is 0"),
        (["generate", "topology", "--kind", "random", "--servers", "4", "--degree", "2", "--set", "x"], "NAME=VALUE"),
        (["generate", "topology", "--kind", "random", "--servers", "4", "--degree", "2", "--set", "x=1"], "'x'"),
        (["generate", "topology", "--kind", "random", "--servers", "4"], "needs degree"),
        (["generate", "topology", "--kind", "random"], "needs servers and degree"),
        (["generate", "topology", "--kind", "random", "--servers", "4.5", "--degree", "2"], "--servers"),
        (["generate", "topology", "--kind", "random", "--servers", "4", "--set", "degree=x"], "degree is 'x'"),
        (["generate", "topology", "--kind", "ring", "--servers", "4", "--degree", "2", "--jobs", "3"], "option 'jobs'"),
        (["generate", "topology", "--kind", "ring", "--servers", "4", "--degree", "2", "--slots", "3"], "'slots'"),
        (["generate", "topology", "--kind", "ring", "--servers", "4", "--set", "servers=5"], "given elsewhere"),
        (["generate", "topology", "--kind", "ring", "--set", "kind=random"], "kind is given elsewhere"),
        (["generate", "topology", "--kind", "ring", "--set", "family_name=x"], "family_name is given elsewhere"),
        (["convert", "missing.fbuf", "--from", "flexnet"], "missing.fbuf"),
        (["convert", "a.fbuf", "--from", "flexnet", "--hours", "2"], "takes no option 'hours'; it takes: degree"),
        (["convert", "a.fbuf", "--from", "flexnet", "--virtual-cluster", "v"], "takes no option 'virtual_cluster'"),
        (["convert", "a.fbuf", "--from", "flexnet", "--start", "monday"], "takes no option 'start'"),
        (["convert", "a.mps", "--from", "miplib", "--seed", "2"], "takes no option 'seed'; it takes none"),
        (["convert", "a.mps", "--from", "miplib", "--set", "path=b"], "path is given elsewhere"),
        (["convert", "a.mps", "--from", "miplib", "--set", "x"], "NAME=VALUE"),
        (["convert", "missing.fbuf", "--from", "magic"], "no format 'magic'; there are: flexnet, microbatches, miplib"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else None,
)
def test_a_wrong_command_line(refused, monkeypatch, tmp_path, arguments, says):
    monkeypatch.chdir(tmp_path)
    assert says in refused(*arguments)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "is empty; expected an instance in JSON"),
        ("// a comment\n{}", "JSON has no comments"),
        ('{"a": 1 # a comment\n}', "JSON has no comments"),
        ("{'a': 1}", "JSON has double quotes only"),
        ('{"a": 1,}', "JSON has no comma after the last"),
        ("family: topology", "is it YAML, TOML or a table?"),
        ('{"name": "x", "slots": 3}', "family is missing, so that it is read as topology; use one of: topology, sched"),
        (lambda: instance_with(allreduce_groups=3), "allreduce_groups: expected a list (got 3)"),
        (lambda: instance_with(servers="four"), "servers: expected a whole number (got 'four')"),
        ('{"family": "topology", "name": "x", ', "not valid JSON"),
        ("[1, 2]", "instance"),
        ("\x00\xff", "not valid JSON"),
        (lambda: instance_with(servers=1), "servers"),
        (lambda: instance_with(degree=0), "degree"),
        (lambda: instance_with(degree=4), "degree is 4, but 4 servers have at most 3 neighbours"),
        (lambda: instance_with(compute_s=-1), "compute_s"),
        (lambda: instance_with(colour="red"), "colour"),
        (lambda: instance_with(traffic_bytes=[[0, 1], [1, 0]]), "traffic_bytes"),
        (lambda: instance_with(traffic_bytes=[[1, 0, 0, 0], [0] * 4, [0] * 4, [0] * 4]), "diagonal"),
        (lambda: instance_with(traffic_bytes=[[0, -1, 0, 0], [0] * 4, [0] * 4, [0] * 4]), "negative"),
        (lambda: instance_with(traffic_bytes=[[0, "NaN", 0, 0], [0] * 4, [0] * 4, [0] * 4]), "traffic_bytes"),
        (lambda: instance_with(traffic_bytes=None).replace("null", "[[0, NaN], [1, 0]]"), "NaN"),
        (lambda: instance_with(allreduce_groups=[{"members": [0, 12], "gradient_bytes": 1}]), "server 12"),
        (lambda: instance_with(family="magic"), "magic"),
    ],
)
@pytest.mark.parametrize("verb", [["show"], ["solve", "--method", "topology-finder", "--out", "a.json"]])
def test_a_wrong_instance(refused, monkeypatch, tmp_path, verb, text, says):
    monkeypatch.chdir(tmp_path)
    file = written(tmp_path, "instance.json", text if isinstance(text, str) else text())
    assert says in refused(verb[0], file, *verb[1:])


@pytest.mark.parametrize(
    ("spoil", "says"),
    [
        (lambda text: text[: len(text) // 2], "not valid JSON"),
        (lambda text: "{}", "topology design"),
        (lambda text: text.replace('"topology"', '"magic"'), "magic"),
        (lambda text: json.dumps({**json.loads(text), "instance_digest": "0" * 64}), "made for instance"),
        (lambda text: json.dumps({**json.loads(text), "links": [[0, 1]]}), "links"),
        (lambda text: json.dumps({**json.loads(text), "links": [[0, 1, 1.5]]}), "links"),
    ],
)
def test_a_wrong_solution(refused, tmp_path, tiny_solution, spoil, says):
    file = written(tmp_path, "solution.json", spoil(tiny_solution))
    assert says in refused("check", TINY, file)
    assert says in refused("solve", TINY, "--method", "rings-and-routes", "--start", file)


@pytest.mark.parametrize(
    ("data", "as_instance", "as_solution"),
    [
        (
            {"format": "ddlopt", "instance": "x", "instance_digest": "", "claim": {}},
            "is a certificate for 'x'",
            "is a certi",
        ),
        (
            {"method": "m", "status": "optimal", "objective": 1, "checked": True},
            "is a result, as --json",
            "is a result",
        ),
        (
            {"family": "topology", "instance": "x", "instance_digest": None},
            "is a solution of 'x'; expected the",
            "links",
        ),
        ({"family": "topology", "name": "x"}, "servers: is missing", "is the instance 'x'; expected a solution"),
        ({"model_type": "llama", "hidden_size": 8}, "--from transformer-pipeline", "is missing"),
    ],
    ids=lambda each: "" if isinstance(each, str) else " ".join(each),
)
def test_another_kind_of_file(refused, tmp_path, data, as_instance, as_solution):
    file = written(tmp_path, "file.json", json.dumps(data))
    assert as_instance in refused("show", file)
    assert as_solution in refused("check", TINY, file)


def test_a_solution_of_another_instance(refused, tmp_path, tiny_solution):
    file = written(tmp_path, "solution.json", tiny_solution)
    assert "made for instance 'tiny-n4-d2'" in refused("check", "topology/tiny-n5-d2", file)


@pytest.mark.parametrize(
    "verb",
    [
        ["solve", TINY, "--method", "topology-finder", "--out"],
        ["solve", TINY, "--method", "topology-finder", "--plot"],
        ["compare", TINY, "--methods", "topology-finder", "--plot"],
        ["generate", "topology", "--kind", "random", "--servers", "4", "--degree", "2", "-o"],
        ["schema", "topology", "-o"],
    ],
    ids=" ".join,
)
def test_a_place_that_does_not_exist(refused, tmp_path, verb):
    assert "does not exist" in refused(*verb, tmp_path / "missing" / "file.png")
    folder = tmp_path / "folder.png"
    folder.mkdir()
    assert "is a folder" in refused(*verb, folder)


@pytest.mark.parametrize(
    ("option", "value", "message"),
    [
        ("--jobs", 0, "Invalid value for '--jobs': "),
        ("--jobs", -2, "'--jobs'"),
        ("--threads", 0, "'--threads'"),
        ("--memory", 0, "--memory 0.0: write a positive number of gigabytes"),
        ("--memory", -1, "--memory -1.0: write"),
        ("--memory", "nan", "--memory nan: write"),
        ("--memory", "inf", "--memory inf: write"),
        ("--time-limit", 0, "--time-limit 0.0: write a positive number of seconds"),
        ("--time-limit", -1, "--time-limit -1.0: write"),
        ("--time-limit", "nan", "--time-limit nan: write"),
        ("--time-limit", "inf", "--time-limit inf: write"),
        ("--seeds", "x", "--seeds x: write whole numbers"),
        ("--methods", ",", "',' names nothing"),
    ],
)
def test_limits_of_a_sweep(refused, tmp_path, option, value, message):
    assert message in refused("bench", TINY, "--store", tmp_path / "r.sqlite", option, value)


@pytest.mark.skipif(find_spec("cplex") is not None, reason="CPLEX is installed here")
def test_a_solver_that_is_not_installed(refused):
    says = refused("solve", TINY, "--method", "rings-and-routes", "--solver", "cplex")
    assert "the solver 'cplex' is not installed" in says


def test_a_defect_is_one_line_too(capsys, monkeypatch):
    monkeypatch.delenv("DDLOPT_TRACEBACK", raising=False)
    monkeypatch.setattr(ddlopt, "load", lambda name: 1 / 0)
    assert run(["show", TINY]) == 1
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("ddlopt: internal error: ZeroDivisionError: division by zero")
    monkeypatch.setenv("DDLOPT_TRACEBACK", "1")
    with pytest.raises(ZeroDivisionError):
        run(["show", TINY])
