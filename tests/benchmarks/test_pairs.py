"""No method or bound contradicts another one on odd instances: a slice by default, most of it in the slow tests."""

from fractions import Fraction

import pytest
from volume import slow

from benchmarks.suite.pairs import Compared, compared
from ddlopt.instances.odd import SETTINGS, odd_instance
from ddlopt.models.catalogue import problems
from ddlopt.models.errors import ContradictionError, InfeasibleError, NotApplicableError
from ddlopt.solvers.contracts import Limits

SEEDS = 30
QUICK = {"compression/sfb", "aggregation/tree", "aggregation/hot", "aggregation/table", "gossip/exchange"}
"""Problems whose methods all take little time: one instance of each setting is in the default tests."""
KNOWN: dict[tuple[str, str, int], str] = {}
"""What is wrong and not mended yet, by problem, setting and seed: a word of it."""


def cases():
    for path in problems():
        for setting in SETTINGS:
            first = pytest.param if path in QUICK else slow
            yield first(path, setting, range(1), id=f"{path}-{setting}-first")
            yield slow(path, setting, range(1, SEEDS), id=f"{path}-{setting}-rest")


@pytest.mark.parametrize(("path", "setting", "seeds"), list(cases()))
@pytest.mark.filterwarnings("ignore")
def test_methods_and_bounds_agree(path, setting, seeds):
    for seed in seeds:
        found = compared(odd_instance(path, setting, seed), Limits(time_s=1.0))
        wrong = [*found.contradictions(), *found.broken]
        assert [line for line in wrong if KNOWN.get((path, setting, seed), "\n") not in line] == [], (setting, seed)


def made(**said):
    return Compared(odd_instance("aggregation/tree", None, 0), 1e-4, **said)


def test_a_bound_above_an_objective_shows():
    told = made(objectives={"a": Fraction(3), "b": Fraction(2)}, bounds={"c": Fraction(5, 2), "d": Fraction(2)})
    assert told.contradictions() == ["bound 2.5 of c, 2 of b"]
    assert told.pairs == 4


def test_two_optima_show():
    told = made(objectives={"a": Fraction(3), "b": Fraction(2)}, optimal=["a", "b"])
    assert told.contradictions() == ["optima 3 of a, 2 of b"]
    near = made(objectives={"a": Fraction(2), "b": Fraction(20001, 10000)}, optimal=["a", "b"])
    assert near.contradictions() == []


def test_infeasible_beside_a_solution_shows():
    told = made(objectives={"a": Fraction(3)}, infeasible=["b"])
    assert told.contradictions() == ["infeasible says b, a has a solution"]


def test_of_what_is_maximised_a_bound_is_above():
    told = Compared(odd_instance("aggregation/hot", None, 0), 1e-4, {"a": Fraction(3)}, [], {"b": Fraction(2)})
    assert told.contradictions() == ["bound 2 of b, 3 of a"]


@pytest.mark.parametrize(
    ("problem", "says"),
    [
        (ContradictionError("both"), {"broken": 1}),
        (ZeroDivisionError("nought"), {"broken": 1}),
        (InfeasibleError("none"), {"infeasible": 1}),
        (NotApplicableError("not this"), {}),
    ],
)
def test_what_methods_raise_is_noted(monkeypatch, problem, says):
    from benchmarks.suite import pairs

    def raises(*_):
        raise problem

    monkeypatch.setattr(pairs, "_solved", raises)
    monkeypatch.setattr(pairs, "entries", lambda family: [type("Entry", (), {"name": "x", "make": print})])
    found = compared(odd_instance("aggregation/tree", None, 0), Limits(time_s=1.0))
    assert {name: len(getattr(found, name)) for name in ("broken", "infeasible") if getattr(found, name)} == says
