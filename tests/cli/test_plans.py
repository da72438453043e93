"""``export-plan`` and ``import-plan``."""

import pytest

import ddlopt
from ddlopt import instances
from ddlopt.cli.shared.completion import plan_formats
from ddlopt.instances import writers

TINY = "topology/tiny-n4-d2"


@pytest.fixture
def design(tmp_path):
    file = tmp_path / "design.json"
    file.write_text(instances.best(TINY).to_json())
    return file


def test_there_and_back(call, design, tmp_path):
    plan, back = tmp_path / "plan.txt", tmp_path / "back.json"
    assert call("export-plan", TINY, design, "--to", "table", "-o", plan) == (0, "", "")
    code, out, _ = call("import-plan", TINY, plan, "--out", back)
    assert (code, out) == (0, "tiny-n4-d2: feasible, objective 11.5 s\n")
    assert back.read_text().rstrip() == instances.best(TINY).to_json()
    code, out, _ = call("export-plan", TINY, design, "--to", "table")
    assert (code, out) == (0, plan.read_text())


def test_the_help_names_every_format(call):
    code, out, _ = call("export-plan", "--help")
    text = " ".join(out.split())
    assert code == 0
    assert all(f" {name}: {summary}" in text for name, summary in writers.summaries().items())


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["--to", "tables"], "there is no format 'tables'"),
        (["--to", "slurm"], "format 'slurm' is for scheduling, and 'tiny-n4-d2' is of topology"),
        (["--to", "table", "--set", "colour=red"], "format 'table' takes no option 'colour'"),
        (["--to", "table", "--set", "out=x"], "--set out: it is given elsewhere"),
        (["--to", "table", "-o", "{folder}"], "is a folder; name a file in it"),
        (["--to", "table", "-o", "{folder}/none/plan"], "cannot be written: the folder"),
    ],
)
def test_bad_input_is_one_line_and_nothing_is_written(call, design, tmp_path, words, says):
    code, out, err = call("export-plan", TINY, design, *(word.format(folder=tmp_path) for word in words))
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert says in err
    assert list(tmp_path.iterdir()) == [design]


def test_an_edited_plan_is_not_taken(call, design, tmp_path):
    plan, back = tmp_path / "plan.txt", tmp_path / "back.json"
    call("export-plan", TINY, design, "--to", "table", "-o", plan)
    plan.write_text(plan.read_text().replace("11.5 s", "1.5 s"))
    code, out, err = call("import-plan", TINY, plan, "-o", back)
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert "is 'objective 1.5 s', but the plan in its last lines says 'objective 11.5 s'" in " ".join(err.split())
    assert not back.exists()


def test_formats_complete_for_the_instance():
    class Context:
        params: dict = {"name": TINY}  # noqa: RUF012 - as Typer has it

    assert plan_formats(Context, "") == list(writers.formats_of(ddlopt.load(TINY)))
    assert plan_formats(Context, "ta") == ["table"]
