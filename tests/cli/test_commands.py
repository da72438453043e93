"""The command line: what it prints, what it writes, how it ends."""

import csv
import io
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from rich.console import Console
from volume import for_each

import ddlopt
from ddlopt.analysis.compare import attempt
from ddlopt.cli import run
from ddlopt.cli.shared.display import LiveLine, quantity
from ddlopt.models.errors import NoSolutionError
from ddlopt.models.topology import TopologyInstance
from ddlopt.solvers.contracts import Limits, TracePoint

DDLOPT = Path(sys.executable).with_name("ddlopt")
TINY = "topology/tiny-n4-d2"


@pytest.fixture
def command(capsys):
    """Run a command line; exit code, standard output, lines on standard error."""

    def call(*arguments):
        code = run([str(argument) for argument in arguments])
        out, err = capsys.readouterr()
        return code, out, err.splitlines()

    return call


@pytest.fixture(scope="module")
def solution(tmp_path_factory):
    """A solution of TINY, as `solve --out` writes it."""
    path = tmp_path_factory.mktemp("solution") / "tiny.json"
    path.write_text(ddlopt.solve(TINY, "topology-finder").solution.to_json())
    return path


def test_help_names_every_command(command):
    code, out, _ = command()
    assert code == 0
    for name in ("list", "show", "solve", "compare", "check", "generate", "convert", "schema", "experiment"):
        assert f" {name} " in out


def test_version(command):
    assert command("--version") == (0, f"ddlopt {ddlopt.__version__}\n", [])


def test_list_names_every_instance_and_method(command):
    code, out, _ = command("list", "topology")
    assert code == 0
    assert set(ddlopt.names("topology")) <= set(out.split())
    code, out, _ = command("list", "topology", "--methods")
    assert code == 0
    assert set(ddlopt.methods("topology")) <= set(out.split())


def test_show_says_what_is_known(command):
    code, out, _ = command("show", TINY)
    assert code == 0
    rows = dict(line.split(None, 1) for line in out.splitlines())
    assert rows["servers"].strip() == "4"
    assert rows["digest"].strip() == ddlopt.load(TINY).digest
    assert rows["by"].split() == ["default", ddlopt.default_method(TINY)]
    assert rows["best"].startswith("known ")


def test_solve_prints_one_json_object(command):
    code, out, err = command("solve", TINY, "--method", "topology-finder", "--json", "--seed", 3)
    data = json.loads(out)
    assert (code, err) == (0, [])
    wanted = {"instance", "method", "status", "objective", "bound", "gap", "runtime_s", "checked", "provenance"}
    assert wanted <= data.keys()
    assert data["checked"] is True
    assert data["bound"] <= data["objective"]
    assert data["provenance"]["seed"] == 3
    assert data["objective"] == ddlopt.solve(TINY, "topology-finder", seed=3).objective


def test_solve_says_which_method_it_took(command):
    code, out, err = command("solve", TINY)
    assert code == 0
    assert err[0].startswith(f"method: {ddlopt.default_method(TINY)} ")
    assert "optimal" in out


def test_a_solution_goes_out_and_in_again(command, tmp_path):
    out_file, picture = tmp_path / "a.json", tmp_path / "a.png"
    code, _, _ = command("solve", TINY, "--method", "topology-finder", "--out", out_file, "--plot", picture)
    assert code == 0
    assert picture.read_bytes().startswith(b"\x89PNG")
    code, out, _ = command("check", TINY, out_file, "--json")
    checked = json.loads(out)
    assert code == 0
    assert checked["feasible"] is True
    assert checked["violations"] == []
    assert command("solve", TINY, "--start", out_file, "--json")[0] == 0


def test_a_reference_has_no_solution_to_write(command, tmp_path):
    code, out, err = command("solve", TINY, "--method", "ideal-switch", "--out", tmp_path / "a.json")
    assert code == 0
    assert "reference" in out
    assert "there is no solution to write" in err
    assert list(tmp_path.iterdir()) == []


def test_exact_check_gives_a_fraction(command, solution):
    code, out, _ = command("check", TINY, solution, "--exact", "--json")
    data = json.loads(out)
    numerator, _, denominator = data["exact_objective"].partition("/")
    assert code == 0
    assert int(numerator) / int(denominator or 1) == data["objective"]


def test_an_infeasible_design_is_told_why_and_exits_1(command, solution, tmp_path):
    data = json.loads(solution.read_text())
    data["links"][0][2] += 5
    broken = tmp_path / "broken.json"
    broken.write_text(json.dumps(data))
    code, out, _ = command("check", TINY, broken)
    assert code == 1
    assert out.startswith("out_degree at server 0: ")
    assert "infeasible" in out
    code, out, _ = command("check", TINY, broken, "--json")
    assert code == 1
    assert {violation["kind"] for violation in json.loads(out)["violations"]} >= {"out_degree", "in_degree"}


def test_compare_prints_json_csv_and_a_picture(command, tmp_path):
    picture = tmp_path / "a.svg"
    methods = "topology-finder,ideal-switch"
    code, out, _ = command("compare", TINY, "topology/tiny-n5-d2", "--methods", methods, "--json", "--plot", picture)
    results = json.loads(out)["results"]
    assert code == 0
    assert [(r["instance"], r["method"]) for r in results] == [
        ("tiny-n4-d2", "topology-finder"),
        ("tiny-n4-d2", "ideal-switch"),
        ("tiny-n5-d2", "topology-finder"),
        ("tiny-n5-d2", "ideal-switch"),
    ]
    assert picture.read_text().startswith("<?xml")
    code, out, _ = command("compare", TINY, "--methods", methods, "--csv")
    assert out.splitlines()[0].startswith("family,instance,n,d,method,status,objective")
    assert len(out.splitlines()) == 3


def test_compare_keeps_what_worked_and_says_what_did_not(command):
    name = "topology/tiny-n4-d2"  # has an all-reduce, which circulant does not cover
    code, out, err = command("compare", name, "--methods", "circulant,topology-finder")
    assert code == 1
    assert "error" in out
    assert "feasible" in out
    assert len([line for line in err if line.startswith("tiny-n4-d2, circulant: ")]) == 1


def test_generate_is_reproducible_and_solvable(command, tmp_path):
    file = tmp_path / "random.json"
    wish = ("generate", "topology", "--kind", "random", "--servers", 5, "--degree", 2, "--seed", 7)
    assert command(*wish, "-o", file)[0] == 0
    assert command(*wish)[1] == file.read_text()
    code, out, _ = command("solve", file, "--method", "topology-finder", "--json")
    assert code == 0
    assert json.loads(out)["instance_digest"] == ddlopt.load(file).digest


def test_generate_takes_any_other_field(command):
    wish = ("generate", "topology", "--kind", "all-to-all", "--servers", 4, "--degree", 2)
    settings = ("--set", "optics=duplex", "--set", "compute_s=0.5", "--set", "bytes_per_pair=3")
    data = json.loads(command(*wish, *settings)[1])
    assert (data["optics"], data["compute_s"]) == ("duplex", 0.5)
    assert data["traffic_bytes"][0] == [0, 3, 3, 3]


def test_schema_is_that_of_the_family(command):
    code, out, _ = command("schema", "topology")
    assert code == 0
    assert "traffic_bytes" in json.loads(out)["$defs"]["TopologyInstance"]["properties"]
    assert (
        "links" in json.loads(command("schema", "topology", "--solution")[1])["$defs"]["TopologyDesign"]["properties"]
    )


def test_the_live_line_shows_what_is_known(capsys):
    console = Console(width=120, force_terminal=True, color_system=None)
    with LiveLine(console=console) as line:
        watch = line.watch("square", "rings-and-routes")
        watch(TracePoint(0.1, 2.0, None))
        watch(TracePoint(0.2, None, 1.0))
        shown = line.lines(120)
    assert shown == ["square  rings-and-routes  claims: best 2 s  bound 1 s  gap 50.00 %  0 s"]
    line("square", "other", TracePoint(0.0, None, None))
    assert line.lines(120) == [*shown, "square  other  best –  bound –  gap –  0 s"]


def test_the_live_line_calls_claims_what_no_check_has_seen():
    """What a method said of a solution or a bound that did not pass is gone with the result."""
    instance, line = ddlopt.load(TINY), LiveLine(console=Console(width=120))

    class Boaster:
        name, family = "boaster", "topology"

        def solve(self, instance, limits, seed, progress):
            progress(TracePoint(0.0, 1.0, 0.9))
            shown.extend(line.lines(120))
            raise NoSolutionError("none was found")

    shown = []
    attempt(instance, Boaster(), Limits(), progress=line)
    assert shown == ["tiny-n4-d2  boaster  claims: best 1 s  bound 0.9 s  gap 10.00 %  0 s"]
    assert line.lines(120) == ["tiny-n4-d2  boaster  best –  bound –  gap –  0 s"]
    line(instance.name, "boaster", TracePoint(0.0, 12.0, 11.5, settled=True))
    assert line.lines(120) == ["tiny-n4-d2  boaster  best 12 s  bound 11.5 s  gap 4.17 %  0 s"]


def test_the_live_line_knows_senses_and_units(monkeypatch):
    instance = ddlopt.load(TINY)
    monkeypatch.setattr(TopologyInstance, "sense", "maximize")
    monkeypatch.setattr(TopologyInstance, "objective_unit", "")
    line = LiveLine([instance], Console(width=120, force_terminal=True, color_system=None))
    line(instance.name, "m", TracePoint(0.1, 0.5, 0.75))
    assert line.lines(120)[-1] == "tiny-n4-d2  m  claims: best 0.5  bound 0.75  gap 50.00 %  0 s"
    line("another", "m", TracePoint(0.1, 0.5, 0.25))
    assert line.lines(120)[-1] == "another  m  claims: best 500 ms  bound 250 ms  gap 50.00 %  0 s"


def test_show_and_check_give_the_unit_of_the_family(command, monkeypatch, solution):
    rows = dict(line.strip().split("  ", 1) for line in command("show", TINY)[1].splitlines())
    assert " s by " in rows["bound"]
    assert " s by " in rows["best known"]
    assert " s\n" in command("check", TINY, solution)[1].split("objective ")[1]
    monkeypatch.setattr(TopologyInstance, "objective_unit", "jobs")
    rows = dict(line.strip().split("  ", 1) for line in command("show", TINY)[1].splitlines())
    assert " jobs by " in rows["best known"]
    assert " jobs by " in rows["bound"]
    assert " jobs\n" in command("check", TINY, solution)[1].split("objective ")[1]


def test_nothing_live_is_written_to_a_file(capsys):
    with LiveLine(console=Console(stderr=True)) as line:
        line("square", "m", TracePoint(0.0, 1.0, 1.0))
    assert capsys.readouterr() == ("", "")


@for_each(
    ("name", "value", "text"),
    [
        ("gradient_bytes", 267.8e6, "267.8 MB"),
        ("link_bandwidth_bytes_per_s", 3.125e9, "3.125 GB/s (25 Gb/s)"),
        ("compute_s", 0.0125, "12.5 ms"),
        ("bandwidth_tax", 1.5, "1.5"),
        ("source", "", "–"),
        ("host_forwarding", True, "True"),
    ],
)
def test_quantities_are_written_in_the_unit_of_their_name(name, value, text):
    assert quantity(name, value) == text


def test_the_installed_command_runs(tmp_path):
    words = [DDLOPT, "solve", TINY, "--method", "topology-finder"]
    out = subprocess.run(words, capture_output=True, text=True, cwd=tmp_path)
    assert out.returncode == 0
    assert "tiny-n4-d2" in out.stdout
    assert out.stderr == ""


def test_a_closed_pipe_is_no_drama():
    with subprocess.Popen([DDLOPT, "schema", "topology"], stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        process.stdout.close()
        assert process.stderr.read() == b""


STARTED = "import sys; from ddlopt.cli import main; print('started', file=sys.stderr, flush=True); main()"
"""The installed command, saying when it is there to take a signal."""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="sends a POSIX signal")
def test_control_c_ends_with_what_was_found(tmp_path):
    """A search that would take hours is interrupted as soon as there is something to return."""
    out = tmp_path / "found.json"
    words = [
        sys.executable,
        "-c",
        STARTED,
        "solve",
        "topology/danoint",
        "--method",
        "rings-and-routes",
        "--json",
        "--out",
        out,
    ]
    environment = {**os.environ, "PYTHONUNBUFFERED": "1"}
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment) as process:
        assert process.stderr.readline() == "started\n"
        time.sleep(5)
        process.send_signal(signal.SIGINT)
        text, complaint = process.communicate(timeout=120)
    assert "Traceback" not in complaint
    if process.returncode == 130:
        assert complaint.splitlines()[-1] == "ddlopt: interrupted"
        assert not out.exists()
    else:
        data = json.loads(text)
        assert "interrupted" in data["message"]
        assert (data["objective"] is not None) == out.exists()
        assert process.returncode == (0 if out.exists() else 1)


def test_solvers_side_by_side(command):
    code, out, _ = command(
        "compare", TINY, "--methods", "rings-and-routes,topology-finder", "--solvers", "highs,scip", "--csv"
    )
    assert code == 0
    rows = list(csv.DictReader(io.StringIO(out)))
    assert [(row["method"], row["status"]) for row in rows] == [
        ("rings-and-routes", "optimal"),
        ("rings-and-routes", "optimal"),
        ("topology-finder", "feasible"),
    ]
    assert [float(row["objective"]) for row in rows[:2]] == pytest.approx([11.5, 11.5])
    code, out, _ = command("compare", TINY, "--methods", "rings-and-routes", "--solvers", "highs,scip")
    assert code == 0
    assert " solver " in out
    assert "HiGHS" in out
    assert "scip" in out
