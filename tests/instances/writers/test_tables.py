"""Tables of plans: every problem has one, it says what the solution says, and what was edited is refused."""

import json

import pytest
from refusals import one_line
from volume import for_each, some

import ddlopt
from ddlopt import instances
from ddlopt.instances import index
from ddlopt.instances.writers import FORMATS, document, export_plan, formats_of, import_plan, options_of
from ddlopt.instances.writers.layout import name
from ddlopt.models.catalogue import problem_of, problems
from ddlopt.models.compression.timeline.instance import CompressionInstance, CompressionPlan, Gradient, Option
from ddlopt.models.errors import OptionError, SolutionError, UnknownNameError
from ddlopt.models.scheduling.solution import Schedule
from ddlopt.models.topology.solution import TopologyDesign

TINY = "topology/tiny-n4-d2"
PROBLEM_OF = {full: listed.problem for full, listed in index.read().instances.items() if listed.objective is not None}
NAMES = [full for full in ddlopt.names() if full in PROBLEM_OF]
HOSTILE = [
    '"; rm -rf /; "',
    "$(touch /tmp/x)",
    "`id`",
    "two\nlines\n#= {}",
    "a\ttab",
    "",
    "'''",
    "é\u2028\u202e",
    "#= {",
    "{%",
]


@pytest.fixture
def kept(tmp_path):
    """The file of an instance's best known solution, the instance and the solution."""

    def write(full, target_format="table"):
        instance, solution = ddlopt.load(full), instances.best(full)
        file = tmp_path / "plan.txt"
        file.write_text(export_plan(instance, solution, target_format), encoding="utf-8")
        return file, instance, solution

    return write


@for_each("full", some(NAMES, 1, of=PROBLEM_OF.get))
def test_every_solution_comes_back(kept, full):
    file, instance, solution = kept(full)
    assert import_plan(instance, file) == solution


def test_every_problem_has_a_table():
    assert set(PROBLEM_OF.values()) == set(problems())
    assert all(problem.module("instances.writers") for problem in problems().values())
    assert formats_of(ddlopt.load(TINY))[0] == "table"


def cells_of(text, title):
    """Rows of a section, by column."""
    lines = text.split("\n")
    start = lines.index(title)
    header, rule = lines[start + 1], lines[start + 2]
    places = [at for at in range(len(rule)) if rule[at] == "-" and (at == 0 or rule[at - 1] == " ")]
    cut = list(zip(places, [*places[1:], None], strict=True))
    rows = []
    for line in lines[start + 3 :]:
        if not line:
            break
        rows.append({header[a:b].strip(): line[a:b].strip() for a, b in cut})
    return rows


def test_a_design_says_links_rings_and_routes(kept):
    file, instance, design = kept(TINY)
    text = file.read_text()
    read = [
        (*map(int, row["servers"].split(" -> ")), int(row["links"])) for row in cells_of(text, "Links between servers")
    ]
    assert tuple(read) == design.links
    rings = cells_of(text, "Rings, servers in rank order")
    assert [tuple(map(int, row["ranks"].split(" -> "))) for row in rings] == [ring.members for ring in design.rings]
    routes = cells_of(text, "Routes of model-parallel traffic")
    paths = [tuple(map(int, row["hop by hop"].split(" -> "))) for row in routes]
    assert paths == [path for route in design.routes for path in route.paths]
    assert sum(float(row["part"]) for row in routes) == pytest.approx(len(design.routes), abs=1e-5)
    assert f"{instance.allreduce_groups[0].gradient_bytes * design.rings[0].share:g} B" in rings[0]["gradient"]


def test_a_schedule_says_when_and_where(kept):
    file, instance, schedule = kept("scheduling/all-or-nothing-j20-t20-g16")
    rows = cells_of(file.read_text(), "Runs by job")
    assert len(rows) == len(schedule.runs)
    for row in rows:
        run = schedule.runs[int(row["run"])]
        assert row["job"] == f"{run.job} {instance.jobs[run.job].name}"
        assert float(row["start"].removesuffix(" s")) == run.start * instance.slot_s
        assert float(row["end"].removesuffix(" s")) == run.end * instance.slot_s
        assert row["servers (workers)"] == ", ".join(f"{server} ({count})" for server, count in run.workers)


def gradients(names, **more):
    """An instance with a gradient of 1000 numbers a name, and two options for each."""
    menu = (
        Option(label="none", wire_s=4.0),
        Option(label="top", compressor="top_k", ratio=0.01, wire_s=1.0, error=0.5),
    )
    each = tuple(Gradient(name=name, shape=(10, 100), ready_s=float(i), menu=0) for i, name in enumerate(names))
    return CompressionInstance(name="mine", gradients=each, menus=(menu,), **more)


def test_a_compression_plan_says_bytes_and_times():
    instance = gradients(["a", "b", "c"], fusion=True)
    plan = CompressionPlan(instance="mine", choices=(0, 1, 1), buckets=(1, 2))
    rows = cells_of(export_plan(instance, plan, "table"), "Gradients in the order of the backward pass")
    assert [(row["before"], row["after"]) for row in rows] == [("4 kB", "4 kB"), ("4 kB", "80 B"), ("4 kB", "80 B")]
    assert [(row["message"], row["sent"], row["there"]) for row in rows] == [
        ("0", "0 s", "4 s"),
        *[("1", "4 s", "6 s")] * 2,
    ]


@pytest.mark.parametrize("hostile", HOSTILE)
def test_names_cannot_break_out_of_a_cell(hostile, tmp_path):
    instance = gradients([hostile, "b"]).model_copy(update={"name": f"mine {hostile}"})
    plan = CompressionPlan(instance=instance.name, choices=(0, 1), instance_digest=instance.digest)
    text = export_plan(instance, plan, "table")
    harmless = export_plan(gradients(["a", "b"]), CompressionPlan(instance="mine", choices=(0, 1)), "table")
    shape = [line[:2] for line in text.split("\n") if not line.startswith("#= ")]
    assert len(shape) == len([line for line in harmless.split("\n") if not line.startswith("#= ")])
    assert all(line.isprintable() for line in text.split("\n"))
    row = cells_of(text, "Gradients in the order of the backward pass")[0]
    assert row["gradient"] == (f"0 {name(hostile)}" if hostile else "0")
    file = tmp_path / "plan.txt"
    file.write_text(text, encoding="utf-8")
    assert import_plan(instance, file) == plan


def test_a_name_reads_as_one_word_or_as_json():
    assert name("block.0/conv-1") == "block.0/conv-1"
    for odd in ["two words", 'a"b', "a\nb", "\u202e", "$x", "`", "\\"]:
        assert json.loads(name(odd)) == odd


@pytest.mark.parametrize("full", [TINY, "scheduling/all-or-nothing-j20-t20-g16", "gossip/abilene-n11-averaging"])
def test_an_edit_of_any_line_is_refused(kept, full):
    """But for the version of the library that wrote it, and what the first line says besides is compared."""
    file, instance, _ = kept(full)
    lines = file.read_text().split("\n")[:-1]
    spread = [*range(20), *range(20, len(lines), 1 + len(lines) // 40)][: len(lines)]
    for number, line in [(number, lines[number]) for number in spread]:
        edited = line[:-1] + ("1" if line[-1:] != "1" else "2")
        file.write_text("\n".join([*lines[:number], edited, *lines[number + 1 :]]) + "\n")
        with one_line(SolutionError):
            import_plan(instance, file)
        file.write_text("\n".join([*lines[:number], *lines[number + 1 :]]) + "\n")
        with one_line(SolutionError):
            import_plan(instance, file)


def test_what_editors_do_to_lines_is_no_edit(kept):
    file, instance, solution = kept(TINY)
    text = file.read_text()
    file.write_bytes(text.replace("\n", "\r\n").encode())
    assert import_plan(instance, file) == solution
    file.write_text(text.replace("\n", "   \n") + "\n\n")
    assert import_plan(instance, file) == solution


def test_another_version_is_told_where_it_matters(kept):
    file, instance, solution = kept(TINY)
    older = file.read_text().replace(f"ddlopt {ddlopt.__version__}", "ddlopt 0.0.7", 1)
    file.write_text(older)
    assert import_plan(instance, file) == solution
    file.write_text(older.replace("bandwidth_tax", "bandwidth-tax"))
    with one_line(SolutionError, f"(it says that ddlopt 0.0.7 wrote it, and this is {ddlopt.__version__})"):
        import_plan(instance, file)


def payload_with(text, **changed):
    """The file with other things in its last lines."""
    lines = text.rstrip("\n").split("\n")
    data = json.loads("".join(line[3:] for line in lines if line.startswith("#= ")))
    return (
        "\n".join([*(line for line in lines if not line.startswith("#= ")), "#= " + json.dumps(data | changed)]) + "\n"
    )


BROKEN = {
    "empty": (lambda text: "", "this is no file of `ddlopt export-plan`"),
    "no last lines": (lambda text: text.split("#= ")[0], "this is no file of `ddlopt export-plan`"),
    "truncated": (lambda text: text[:-200], "are damaged"),
    "no JSON": (lambda text: text[:-200] + "}}}", "are damaged"),
    "a list": (lambda text: "#= []", "are damaged: expected an object with format, instance"),
    "a field too many": (lambda text: payload_with(text, more=1), "are damaged: expected an object with"),
    "no text": (lambda text: payload_with(text, format=3), "are damaged: format is no text"),
    "options": (lambda text: payload_with(text, options=[]), "are damaged: options are no object"),
    "an option": (lambda text: payload_with(text, options={"x": 1}), "format 'table' takes no option 'x'"),
    "a name of Python": (lambda text: payload_with(text, options={"instance": 1}), "multiple values"),
    "a format": (lambda text: payload_with(text, format="tables"), "its format is 'tables'; there are: table"),
    "a format of others": (lambda text: payload_with(text, format="slurm"), "format 'slurm' is for scheduling"),
    "an instance": (lambda text: payload_with(text, instance_digest="0" * 64), "not for 'tiny-n4-d2'"),
    "a solution": (lambda text: payload_with(text, solution={"family": "topology"}), "is missing"),
    "no solution": (lambda text: payload_with(text, solution=None), "topology design"),
}


@pytest.mark.parametrize("how", BROKEN)
def test_files_that_are_broken(kept, how):
    file, instance, _ = kept(TINY)
    change, says = BROKEN[how]
    file.write_text(change(file.read_text()))
    with one_line(SolutionError, says):
        import_plan(instance, file)


def test_a_forged_solution_has_to_be_what_is_shown(kept):
    file, instance, solution = kept(TINY)
    fewer = solution.model_dump(mode="json") | {"links": [[0, 1, 1]]}
    file.write_text(payload_with(file.read_text(), solution=fewer))
    with one_line(SolutionError, "is infeasible for 'tiny-n4-d2'"):
        import_plan(instance, file)
    other = instances.best(TINY).model_dump(mode="json")
    other["rings"][0]["share"], other["rings"][1]["share"] = 0.5, 0.5
    file, *_ = kept(TINY)
    file.write_text(payload_with(file.read_text(), solution=other))
    with one_line(SolutionError, "but the plan in its last lines says"):
        import_plan(instance, file)


def test_what_is_refused_before_anything_is_written(tmp_path):
    instance, best = ddlopt.load(TINY), instances.best(TINY)
    out = tmp_path / "plan.txt"
    broken = TopologyDesign(instance=instance.name, links=((0, 1, 1),))
    with one_line(SolutionError, "the topology design is infeasible for 'tiny-n4-d2': "):
        ddlopt.export_plan(instance, broken, "table", out=out)
    with one_line(SolutionError, "a scheduling solution cannot answer the topology instance"):
        ddlopt.export_plan(instance, Schedule(instance="x"), "table", out=out)
    with one_line(SolutionError, "the solution was made for instance 'tiny-n4-d2'"):
        ddlopt.export_plan("topology/tiny-n5-d3-duplex", best, "table", out=out)
    with one_line(UnknownNameError, f"there is no format 'tables'; there are: {', '.join(FORMATS)}"):
        ddlopt.export_plan(instance, best, "tables", out=out)
    with one_line(OptionError, "format 'table' takes no option 'colour'; it takes none"):
        ddlopt.export_plan(instance, best, "table", out=out, colour=1)
    with one_line(OptionError, "the folder"):
        ddlopt.export_plan(instance, best, "table", out=tmp_path / "none" / "plan.txt")
    assert list(tmp_path.iterdir()) == []


def test_the_library_is_what_python_and_the_shell_write(kept, tmp_path):
    file, _, solution = kept(TINY)
    out = tmp_path / "out.txt"
    assert ddlopt.export_plan(TINY, solution, "table", out=out) == file.read_text() == out.read_text()
    assert ddlopt.import_plan(TINY, out) == solution


def test_options_are_no_objects_of_python():
    instance, best = ddlopt.load(TINY), instances.best(TINY)
    with one_line(OptionError, "options of a format are words, numbers and lists of them"):
        document.Stamp.of("table", instance, best, {"x": object()})


def test_formats_name_their_problems():
    known = set(problems())
    for full in [TINY, "compression/espresso-resnet101-dgc-pcie"]:
        assert problem_of(ddlopt.load(full)).path in known
    assert all(isinstance(options_of(each), dict) for each in FORMATS)
