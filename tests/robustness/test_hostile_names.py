"""Names that mean something to a terminal, to Rich, to HTML, LaTeX or a file system, through every command."""

import json
import re

import numpy as np
import pytest
from report_cases import make_store
from volume import for_each, slow, some

import ddlopt
from ddlopt.analysis import tables
from ddlopt.analysis.bench import Store
from ddlopt.instances import best
from ddlopt.models.errors import plain
from ddlopt.models.topology import TopologyInstance

NAMES = {
    "all": "[/nope][red]\x1b[31m\x9b31m\u202e<script>alert(1)</script>$\\frac{$ :skull:\n|*\\ x" + "n" * 300,
    "tag": "[/nope]",
    "style": "[red]x[link=file:///etc]",
    "escape": "\x1b[31m\x1b]0;title\x07red",
    "c1": "a\x9b31mb\x7f\x08",
    "html": "<script>alert(1)</script>\"'&amp;",
    "left": "abc\u202egnp.exe\u2066",
    "lines": "one\ntwo\r\nthree\u2028four\ttab",
    "long": "n" * 5000,
    "path": "../../../../tmp/x",
    "math": "$\\frac{$ \\input{x} %",
    "latex": "[1em] & \\\\ #1",
    "emoji": ":skull: \N{SKULL}\N{CJK UNIFIED IDEOGRAPH-4E2D}",
    "nul": "a\0b",
    "spaces": "   ",
    "model": "*\\\nEND\nROWS\n N x",
    "bytes": "-" * 3,
}
DEFAULT = ("all",)


def is_tame(text):
    """Nothing in it steers a terminal, and each character can be written."""
    text.encode("utf-8")
    return all(line.isprintable() for line in text.split("\n"))


@pytest.fixture(params=some(NAMES, DEFAULT))
def hostile(request, tmp_path):
    """A file with an instance whose name and source are hostile, and the name."""
    name = NAMES[request.param]
    traffic = np.ones((4, 4)) - np.eye(4)
    instance = TopologyInstance(
        name=name, source=name, servers=4, degree=2, link_bandwidth_bytes_per_s=1.0, traffic_bytes=traffic
    )
    file = tmp_path / "hostile.json"
    file.write_text(instance.to_json())
    return file, name


def test_every_command(hostile, tmp_path, call):
    file, name = hostile
    design, model, picture = tmp_path / "design.json", tmp_path / "model.lp", tmp_path / "x.png"
    solve = ["solve", file, "--method", "topology-finder"]
    formulation = ["--formulation", "rings-and-routes"]
    for code, words in (
        (0, ["show", file]),
        (0, ["show", file, "--json"]),
        (0, [*solve, "--out", design, "--plot", picture]),
        (0, [*solve, "--json"]),
        (0, ["compare", file, "--methods", "topology-finder,expander", "--plot", picture]),
        (0, ["compare", file, "--methods", "topology-finder", "--csv"]),
        (0, ["compare", file, "--methods", "topology-finder", "--json"]),
        (0, ["check", file, design]),
        (0, ["check", file, design, "--json"]),
        (0, ["certify", file, "--out", tmp_path / "proof", "--time-limit", "60"]),
        (0, ["check", file, "--certificate", tmp_path / "proof"]),
        (0, ["export", file, *formulation, "--out", model, "--start-from", "topology-finder", "--start-for", "highs"]),
        (2, ["check", "topology/tiny-n4-d2", design]),
        (2, ["solve", file, "--method", name]),
        (2, ["show", name]),
        (2, ["generate", name, "--kind", name]),
        (2, ["convert", file, "--from", name]),
        (2, ["list", name]),
        (2, ["solve", file, "--method", "ring", "--solver", name]),
    ):
        got, out, told = call(*words)
        assert got == code, (words, told)
        assert "internal error" not in told
        assert is_tame(out)
        assert is_tame(told)
        assert got == 0 or len(told.splitlines()) == 1
        if words[-1] == "--json":
            assert json.loads(out)
        if words[0] == "show" and got == 0 and "--json" not in words:
            assert plain(name).split()[0][:20] in out if name.strip() else True
    told = call(*solve, "--json")[1]
    assert json.loads(told)["instance"] == name


def test_models_for_other_solvers_stay_what_they_are(hostile, tmp_path, call):
    """A name cannot become a part of the model: HiGHS reads the same from each file."""
    import highspy

    file, _ = hostile
    found = []
    for place in (file, "topology/all-to-all-n4-d2"):
        instance = ddlopt.load(file)
        if place is not file:
            instance = instance.model_copy(update={"name": "tame"})
            (tmp_path / "tame.json").write_text(instance.to_json())
        for ending in ("lp", "mps"):
            source = file if place is file else tmp_path / "tame.json"
            assert (
                call("export", source, "--formulation", "rings-and-routes", "--out", tmp_path / f"m.{ending}")[0] == 0
            )
            solver = highspy.Highs()
            solver.setOptionValue("output_flag", False)
            assert solver.readModel(str(tmp_path / f"m.{ending}")) == highspy.HighsStatus.kOk
            solver.run()
            found.append(round(solver.getInfo().objective_function_value, 6))
    assert len(set(found)) == 1


def test_reports(hostile, tmp_path, call):
    """Names, messages, hosts, options: nothing of a store can become a part of a page."""
    _, name = hostile
    store = make_store(tmp_path / "store.sqlite")
    with Store(store) as opened:
        run = next(opened.runs(solutions=True))
        instance = dict(opened.instances()[run["instance_digest"]])
        odd = {"digest": name, "name": name, "source": name, "sizes": {"n": name}}
        texts = {"key": "k", "instance_digest": name, "instance": name, "method": name, "solver": name, "host": name,
                 "message": name, "options": {name: "\ud800"}, "details": {name: name}, "scope": name,
                 "finished": name, "revision": name, "versions": {"ddlopt": name, "\ud800": name},
                 "machine": {"cpu": name, "system": name, "cores": 1, "memory_bytes": 1}}  # fmt: skip
        opened.add(run | texts, instance | odd)
    for words in (
        ["report", store, "--out", tmp_path / "report", "--title", name, "--save-charts", "svg"],
        ["results", store, "--out", tmp_path / "table.csv"],
    ):
        code, out, told = call(*words)
        assert code == 0, told
        assert is_tame(out + told)
    for page in tmp_path.glob("report/**/*"):
        assert (tmp_path / "report").resolve() in page.resolve().parents
        if page.suffix in (".html", ".csv", ".md", ".tex"):
            text = page.read_text()
            assert is_tame(text)
            assert "<script>alert" not in text or page.suffix not in (".html", ".md")
            assert page.suffix != ".tex" or not re.search(r"^\[", text, re.MULTILINE)


@for_each("name", some(list(NAMES.values()), 1))
def test_results_with_odd_words(name):
    """Methods, messages, solvers and details, as tables, notes and lines."""
    from ddlopt.analysis.fitted import out_console
    from ddlopt.cli.shared.display import LiveLine
    from ddlopt.solvers.contracts import TracePoint

    instance = ddlopt.load("topology/tiny-n4-d2")
    result = ddlopt.solve(instance, "topology-finder")
    for each in ("method", "message", "instance", "scope"):
        object.__setattr__(result, each, name + "\ud800")
    object.__setattr__(result, "provenance", {"solver": name})
    console = out_console()
    with console.capture() as caught:
        console.print(tables.table([result], [instance]))
    assert is_tame(caught.get())
    assert is_tame(tables.csv_text([result], [instance]))
    assert is_tame(tables.markdown([result], [instance]))
    assert is_tame(tables.json_text(result.to_data()))
    line = LiveLine([instance])
    line(name, name, TracePoint(0.0, 1.0, None))
    assert all(map(is_tame, line.lines(200)))


@pytest.mark.parametrize("place", ["name", "unknown", "links", "source"])
@pytest.mark.parametrize("name", [*some([NAMES["escape"]], 1), *map(slow, NAMES.values())])
def test_what_is_wrong_with_a_file_is_told_tamely(tmp_path, call, place, name):
    """In instances and in solutions, in keys and in values."""
    data = json.loads(ddlopt.load("topology/tiny-n4-d2").to_json())
    solution = json.loads(best("topology/tiny-n4-d2").to_json())
    for each, words in ((data, ["show"]), (solution, ["check", "topology/tiny-n4-d2"])):
        each |= {"unknown": {name: 1}, "links": {"links": name, "degree": name}}.get(place, {place: [name]})
        (tmp_path / "odd.json").write_text(json.dumps(each))
        code, out, told = call(*words, tmp_path / "odd.json")
        assert code == 2
        assert is_tame(out + told)
        assert len(told.splitlines()) == 1
