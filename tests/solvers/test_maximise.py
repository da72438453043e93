"""Everything that compares objectives does so in the instance's sense: here the larger one is the better one."""

import dataclasses
from dataclasses import dataclass
from itertools import combinations
from typing import Any, ClassVar

import pyomo.environ as pyo
import pytest
from gate_cases import finish
from stand_ins import Canned, Scripted

from ddlopt.models import catalogue
from ddlopt.models.contracts import Evaluation, Instance, Solution, Violation
from ddlopt.models.errors import SolverError
from ddlopt.solvers.backends import Highs, Outcome
from ddlopt.solvers.certify import Gate
from ddlopt.solvers.contracts import Limits, Status, TracePoint, best_bound, best_objective, better, relative_gap
from ddlopt.solvers.exact import Exact
from ddlopt.solvers.heuristic import Heuristic
from ddlopt.solvers.wrappers.warm_started import WarmStarted


class PackInstance(Instance):
    """Items that fit into a knapsack: the more value, the better."""

    family: str = "pack"
    weights: tuple[int, ...] = (3, 5, 7, 9, 11)
    values: tuple[int, ...] = (4, 5, 8, 9, 13)
    room: int = 17

    @property
    def sense(self):
        return "maximize"

    @property
    def objective_unit(self):
        return "gold"


class PackSolution(Solution):
    family: str = "pack"
    instance: str = "bag"
    chosen: tuple[int, ...]


def evaluate(instance, solution, exact=False):
    weight = sum(instance.weights[k] for k in solution.chosen)
    heavy = () if weight <= instance.room else (Violation("room", "all", weight, instance.room),)
    return Evaluation(sum(instance.values[k] for k in solution.chosen), heavy)


@dataclass(frozen=True)
class Pack:
    """Maximises the value of what is taken, or minimises the value of what is left."""

    sense: Any = "maximize"
    searched: str | None = None

    def refuses(self, instance):
        return None

    def scope(self, instance):
        return self.searched

    def build(self, block, instance):
        items = range(len(instance.weights))
        block.take = pyo.Var(items, domain=pyo.Binary)
        block.fits = pyo.Constraint(expr=sum(instance.weights[k] * block.take[k] for k in items) <= instance.room)
        value = sum(instance.values[k] * block.take[k] for k in items)
        block.objective = pyo.Expression(expr=value if self.sense == "maximize" else sum(instance.values) - value)

    def start(self, block, instance, solution):
        for k in range(len(instance.weights)):
            block.take[k] = int(k in solution.chosen)

    def read(self, block, instance):
        chosen = tuple(k for k in range(len(instance.weights)) if pyo.value(block.take[k]) > 0.5)
        return PackSolution(chosen=chosen)

    def objective_value(self, instance, value):
        return value if self.sense == "maximize" else sum(instance.values) - value


BAG = PackInstance(name="bag")
OPTIMUM = max(
    sum(BAG.values[k] for k in chosen)
    for size in range(6)
    for chosen in combinations(range(5), size)
    if sum(BAG.weights[k] for k in chosen) <= BAG.room
)
NOTHING, LITTLE, SOME, MUCH = (PackSolution(chosen=chosen) for chosen in ((), (0,), (1, 3), (1, 4)))


@pytest.fixture(autouse=True)
def pack(register_family):
    """The family, registered for one test; 30 is what its combinatorial bound says."""
    problem = catalogue.Problem(
        path="pack",
        title="which items have the most value",
        counts="items",
        limited_by="room in the bag",
        instance=PackInstance,
        solution=PackSolution,
        evaluate=evaluate,
        bound=lambda _: 30.0,
    )
    register_family(catalogue.Family.of_one("most value that fits", problem))


def finished(solution=MUCH, **changes):
    return finish(BAG, "test", solution, **{"runtime_s": 0.5, "limits": Limits(), **changes})


# Gaps and bounds ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("objective", "bound", "sense", "gap"),
    [
        (4.0, 5.0, "maximize", 0.25),
        (4.0, 4.0, "maximize", 0.0),
        (4.0, 3.0, "maximize", 0.0),
        (-4.0, -3.0, "maximize", 0.25),
        (-4.0, -5.0, "minimize", 0.25),
        (0.0, 0.0, "maximize", 0.0),
        (0.0, -1.0, "maximize", 0.0),
        (0.0, 1.0, "maximize", None),
        (0.0, 1.0, "minimize", 0.0),
        (0.0, -1.0, "minimize", None),
        (None, 1.0, "maximize", None),
        (1.0, None, "maximize", None),
    ],
)
def test_gap(objective, bound, sense, gap):
    assert relative_gap(objective, bound, sense) == gap


def test_what_is_better_and_what_is_tight():
    assert (better(2, 1, "maximize"), better(1, 2, "maximize"), better(1, 1, "maximize")) == (True, False, False)
    assert (better(2, 1, "minimize"), better(1, 2, "minimize"), better(1, 1, "minimize")) == (False, True, False)
    assert (best_objective((3, None, 5), "minimize"), best_objective((3, None, 5), "maximize")) == (3, 5)
    assert (best_bound((3, None, 5), "minimize"), best_bound((3, None, 5), "maximize")) == (5, 3)
    assert best_objective((None, None), "maximize") is best_bound((), "minimize") is None


def test_instances_are_minimised_in_seconds_unless_they_say_otherwise():
    plain = Instance(family="plain", name="plain")
    assert (plain.sense, plain.objective_unit) == ("minimize", "s")
    assert "sense" not in plain.model_dump()


# The check at the end -------------------------------------------------------------------------------------------------


def test_a_result_says_its_sense_and_unit():
    result = finished()
    assert (result.sense, result.unit) == ("maximize", "gold")
    data = result.to_data()
    assert (data["sense"], data["unit"]) == ("maximize", "gold")
    assert data["gap"] == pytest.approx((30 - 18) / 18)
    nothing = Gate(BAG, "test", Limits()).failed("")
    assert (nothing.sense, nothing.unit) == ("maximize", "gold")


def test_the_smaller_upper_bound_counts():
    assert finished(bound=25.0).bound == 25.0
    assert finished(bound=35.0).bound == 30.0
    assert finished(bound=18.0).status is Status.OPTIMAL
    assert finished(bound=19.0).status is Status.FEASIBLE


def test_a_bound_below_the_checked_objective_is_an_error():
    with pytest.raises(SolverError, match=r"bound 17\.9 is below the checked objective 18"):
        finished(bound=17.9)
    with pytest.raises(SolverError, match="bound within its scope 10 is below"):
        finished(scope="half", scope_bound=10.0)


def test_a_bound_below_by_rounding_is_moved_to_the_objective():
    result = finished(bound=18 - 1e-6, scope="all of it", scope_bound=18 - 1e-6)
    assert (result.bound, result.scope_bound, result.status) == (18.0, 18.0, Status.OPTIMAL)


def test_a_worthless_solution_has_no_gap_until_nothing_more_is_possible():
    assert finished(NOTHING).gap is None
    assert finished(NOTHING).status is Status.FEASIBLE
    assert finished(NOTHING, bound=0.0).status is Status.OPTIMAL


def test_a_gap_within_a_scope():
    result = finished(scope="half", scope_bound=20.0)
    assert (result.gap, result.scope_gap) == (pytest.approx(12 / 18), pytest.approx(2 / 18))


# Exact ----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("sense", ["maximize", "minimize"])
def test_a_model_of_either_sense_finds_the_optimum(sense):
    heard = []
    result = Exact("e", "pack", Pack(sense), Highs()).solve(BAG, Limits(), progress=heard.append)
    assert result.status is Status.OPTIMAL
    assert result.objective == OPTIMUM == 18
    assert result.objective <= result.bound <= OPTIMUM * (1 + 1e-4)
    incumbents = [point.incumbent for point in heard if point.incumbent is not None]
    bounds = [point.bound for point in heard if point.bound is not None]
    assert incumbents == sorted(incumbents)
    assert bounds == sorted(bounds, reverse=True)
    assert incumbents[-1] == pytest.approx(OPTIMUM)


@pytest.mark.parametrize(
    ("sense", "outcome"),
    [("maximize", Outcome(Status.FEASIBLE, 14.0, 22.0)), ("minimize", Outcome(Status.FEASIBLE, 25.0, 17.0))],
)
def test_a_start_is_kept_where_it_is_better_only(sense, outcome):
    some = Exact("e", "pack", Pack(sense), Canned(outcome, values=(0, 1, 0, 1, 0)))
    kept = some.solve(BAG, Limits(), start=MUCH)
    assert (kept.solution, kept.objective, kept.bound, kept.message) == (MUCH, 18.0, 22.0, "kept the start")
    dropped = some.solve(BAG, Limits(), start=LITTLE)
    assert (dropped.solution, dropped.objective, dropped.bound) == (SOME, 14.0, 22.0)


@pytest.mark.parametrize(("dual", "bound"), [(40.0, 30.0), (20.0, 20.0), (None, 30.0)])
def test_without_a_solution_the_smaller_bound_is_left(dual, bound):
    nothing = Exact("e", "pack", Pack(), Canned(Outcome(Status.NO_SOLUTION, None, dual)))
    assert nothing.solve(BAG, Limits()).bound == bound


@pytest.mark.parametrize("values", [(), (0, 1, 0, 1, 0)])
def test_ctrl_c_is_handed_on_by_an_exact_method(values):
    objective = 14.0 if values else None
    status = Status.FEASIBLE if values else Status.NO_SOLUTION
    cut = Outcome(status, objective, 22.0, message="interrupted", interrupted=True)
    assert Exact("e", "pack", Pack(), Canned(cut, values)).solve(BAG, Limits()).interrupted
    calm = dataclasses.replace(cut, interrupted=False)
    assert not Exact("e", "pack", Pack(), Canned(calm, values)).solve(BAG, Limits()).interrupted


# Heuristics and both --------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Taking(Heuristic):
    """Takes what it was made to take."""

    solution: PackSolution
    pressed: bool = False
    name: ClassVar[str] = "taking"
    family: ClassVar[str] = "pack"

    def answer(self, instance, seed, clock, start):
        clock.interrupted = self.pressed
        return self.solution, {}


def test_a_heuristic_has_an_upper_bound_and_hands_ctrl_c_on():
    result = Taking(SOME).solve(BAG, Limits())
    assert (result.objective, result.bound, result.sense, result.interrupted) == (14.0, 30.0, "maximize", False)
    assert Taking(SOME, pressed=True).solve(BAG, Limits()).interrupted


def opened(first, second, progress=None):
    model = Scripted("slow", second, family="pack")
    both = WarmStarted("both", "pack", Scripted("quick", first, family="pack"), lambda instance: model)
    return both.solve(BAG, Limits(), progress=progress), model


def test_the_larger_solution_and_the_smaller_bound_win():
    result, model = opened({"objective": 4.0, "bound": 9.0}, {"objective": 5.0, "bound": 8.0})
    assert (result.objective, result.bound, result.solution, result.gap) == (5.0, 8.0, "solution of slow", 0.6)
    assert result.status is Status.FEASIBLE
    assert [start for *_, start in model.asked] == ["solution of quick"]
    result, _ = opened({"objective": 5.0, "bound": 8.0}, {"objective": 4.0, "bound": 9.0, "scope": "half"})
    assert (result.objective, result.bound, result.solution, result.scope) == (5.0, 8.0, "solution of quick", None)


def test_the_smaller_bound_may_prove_the_larger_solution():
    result, _ = opened({"objective": 5.0, "bound": 9.0}, {"objective": 4.0, "bound": 5.0 - 1e-9})
    assert (result.status, result.bound) == (Status.OPTIMAL, 5.0)


def test_progress_never_falls_behind_the_heuristic():
    seen = []
    second = {"objective": 6.0, "bound": 7.0, "trace": (TracePoint(0.1, 3.0, 9.0), TracePoint(0.2, 6.0, 7.0))}
    result, _ = opened({"objective": 5.0, "bound": 8.0}, second, progress=seen.append)
    known = [(5.0, 8.0), (6.0, 7.0)]
    assert [(point.incumbent, point.bound) for point in seen] == known
    assert [(point.incumbent, point.bound) for point in result.trace] == known


def test_ctrl_c_in_the_heuristic_leaves_the_model_alone_and_in_the_model_is_handed_on():
    result, model = opened({"objective": 4.0, "interrupted": True}, {"objective": 5.0})
    assert (result.interrupted, result.objective, model.asked) == (True, 4.0, [])
    result, _ = opened({"objective": 6.0}, {"objective": 5.0, "interrupted": True})
    assert (result.interrupted, result.objective) == (True, 6.0)
    result, _ = opened({"objective": 6.0}, {"objective": 5.0})
    assert not result.interrupted
