import json
from dataclasses import dataclass
from typing import Any

import highspy
import pyomo.environ as pyo
import pytest

from ddlopt.models.errors import NotApplicableError, OptionError
from ddlopt.solvers.backends.files import read_solution, write_model


@pytest.mark.parametrize("kind", ["mps", "lp", "nl"])
def test_same_bytes_every_time(cover, tmp_path, kind):
    first = write_model(cover.minimise(), cover.instance, tmp_path / f"a.{kind}")
    second = write_model(cover.minimise(), cover.instance, tmp_path / f"b.{kind}")
    assert [path.read_bytes() for path in first] == [path.read_bytes() for path in second]
    assert {*first, *second} == set(tmp_path.iterdir())


@pytest.mark.parametrize("kind", ["mps", "lp"])
@pytest.mark.parametrize("sense", ["minimise", "maximise"])
def test_another_solver_reads_the_same_problem(cover, tmp_path, kind, sense):
    path, names, *_ = write_model(getattr(cover, sense)(), cover.instance, tmp_path / f"a.{kind}")
    highs = highspy.Highs()
    highs.silent()
    highs.readModel(str(path))
    highs.run()
    expected = 18 if sense == "minimise" else 39 - 18
    assert highs.getObjectiveValue() == pytest.approx(-expected if (sense, kind) == ("maximise", "mps") else expected)
    variables = json.loads(names.read_text())["variables"]
    values = highs.getSolution().col_value
    taken = {variables.get(name) for name, value in zip(highs.getLp().col_names_, values, strict=True) if value > 0.5}
    taken.discard(None)  # a column of the writer's own, for the constant of the objective
    assert taken == {"cover.take[0]", "cover.take[1]", "cover.take[3]"}


def test_names_of_constraints(cover, tmp_path):
    _, names, *_ = write_model(cover.minimise(), cover.instance, tmp_path / "a.lp")
    assert list(json.loads(names.read_text())["constraints"].values()) == ["cover.enough"]


def test_refusals_write_nothing(cover, tmp_path):
    with pytest.raises(OptionError, match=r"written as mps, lp, nl, json, not as 'txt' \(a.txt\)"):
        write_model(cover.minimise(), cover.instance, tmp_path / "a.txt")
    with pytest.raises(OptionError, match="cannot be written: No such file or directory"):
        write_model(cover.minimise(), cover.instance, tmp_path / "nowhere" / "a.lp")
    empty = cover.Instance(name="empty", weights=(), costs=(), need=1)
    with pytest.raises(NotApplicableError, match="nothing to choose from"):
        write_model(cover.minimise(), empty, tmp_path / "a.lp")
    assert not list(tmp_path.iterdir())


@dataclass(frozen=True)
class Spare:
    """A formulation with a variable that occurs nowhere and cannot be zero, and one that is fixed."""

    of: Any

    def __getattr__(self, name):
        return getattr(self.of, name)

    def build(self, block, instance):
        self.of.build(block, instance)
        block.unused = pyo.Var(bounds=(4, 7))
        block.given = pyo.Var(initialize=2)
        block.given.fix()
        block.also = pyo.Constraint(expr=block.given + block.take[0] >= 1)

    def read(self, block, instance):
        assert 4 <= block.unused.value <= 7
        assert block.given.value == 2
        return self.of.read(block, instance)


def test_variables_that_are_in_no_file(cover, tmp_path):
    (tmp_path / "a.sol").write_text("objective value: 18\n" + "".join(f"cover_take({k}) 1\n" for k in (0, 1, 3)))
    assert read_solution(Spare(cover.minimise()), cover.instance, tmp_path / "a.sol").chosen == (0, 1, 3)
