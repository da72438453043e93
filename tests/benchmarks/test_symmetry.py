"""An instance that asks the same has the same answers: a slice by default, more of it in the slow tests."""

import random
from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction

import pytest
from volume import slow

from benchmarks.suite import symmetry
from benchmarks.suite.pairs import Compared
from ddlopt import instances
from ddlopt.instances.generators import generate
from ddlopt.instances.odd import SETTINGS, odd_instance
from ddlopt.instances.schema_walk import walk
from ddlopt.instances.symmetries import regrouped, renamed, reordered, scaled, tight, twins
from ddlopt.instances.symmetries.answers import ANSWERS
from ddlopt.instances.symmetries.roles import role, roles_in
from ddlopt.instances.symmetries.shapes import INSTANCES
from ddlopt.models.catalogue import problem, problems
from ddlopt.solvers.catalogue import method
from ddlopt.solvers.contracts import Limits

WITHOUT_UNIT = {
    "activation.*": "probabilities",
    "alpha": "exponent",
    "batch_samples": "samples",
    "chance": "probability",
    "curvature": "of a part done",
    "degradation": "part",
    "edge_budgets.*": "probabilities",
    "epsilon": "part",
    "expert_parameters": "number",
    "factors.*": "of a mean",
    "fractions.*": "parts",
    "frequencies.*": "probabilities",
    "iterations": "number",
    "loss": "part",
    "matrix.*.*": "parts",
    "minibatches": "number",
    "mixing": "part",
    "overlap": "part",
    "period": "steps",
    "probabilities.*": "probabilities",
    "chances.*": "probabilities",
    "rate": "of a part done",
    "rates.*": "read by rules only",
    "ratio": "part",
    "samples.*": "relative errors have no unit",
    "saved_messages.*": "number",
    "share": "part",
    "shares.*": "parts",
    "slots.*.*": "number",
    "slowdown": "factor",
    "speeds.*": "factor",
    "step": "as samples",
    "values.*.*": "as samples",
    "weights.*": "parts",
}


def schema(kind) -> dict[str, set[str | None]]:
    """The types of each path of a document."""
    found = {}
    for path, told in walk(kind.model_json_schema(mode="validation")):
        found.setdefault(".".join(map(str, path)), set()).add(told.get("type"))
    return found


@pytest.mark.parametrize("path", list(problems()))
def test_roles_are_of_fields_and_figures_have_units(path):
    """A field that is new, or has another name, is to be in the table: scaling and renaming would pass it by."""
    for table, kind in ((INSTANCES, problem(path).instance), (ANSWERS, problem(path).solution)):
        types = schema(kind)
        for key in (each for each in table if each.partition(" ")[0] == path):
            assert sorted(set(roles_in(table[key])) - set(types)) == []
            bare = {place for place, found in types.items() if "number" in found and role(table[key], place) is None}
            inside = {place for place, told in roles_in(table[key]).items() if told.kind == "document"}
            assert [
                place
                for place in sorted(bare)
                if not any(place.endswith(end) for end in WITHOUT_UNIT) and not place.startswith(tuple(inside))
            ] == []


@pytest.mark.parametrize("path", list(problems()))
def test_what_is_written_reads_the_same(path):
    for setting in SETTINGS:
        assert symmetry.read_again(odd_instance(path, setting, 0), random.Random(0)) == []


def test_answers_and_bounds_of_twins_agree():
    found = symmetry.figures("aggregation/tree", "ties", 0, Limits(0.2, 0.0))
    assert found["remarks"] == []
    assert found["twins"] >= 5
    assert found["pairs"] > 500
    assert found["checks"] > 10


def cases() -> Iterator[object]:
    for path in problems():
        yield slow(path, range(1), id=path)


@pytest.mark.parametrize(("path", "seeds"), list(cases()))
@pytest.mark.filterwarnings("ignore")
def test_nothing_contradicts_a_twin(path, seeds):
    for seed in seeds:
        for setting in SETTINGS:
            assert symmetry.figures(path, setting, seed, Limits(0.5, 0.0))["remarks"] == []


@pytest.fixture(scope="module")
def tree():
    instance = generate("aggregation", "tree-random", 1, nodes=7, jobs=2, loads="uniform", budget=3)
    return instance, method("tree-greedy", "aggregation").solve(instance, Limits(1.0)).solution


def test_every_way_makes_another_instance(tree):
    made = [each for each in twins(tree[0], 1) if not isinstance(each, str)]
    assert {each.way for each in made} >= {"renamed", "reordered", "in powers of 2", "in powers of 10"}
    assert [each.way for each in made if each.instance == tree[0]] == []


@pytest.mark.parametrize(
    "make", [renamed, reordered, lambda each, draw: scaled(each, draw, 2.0, 20)], ids=["renamed", "reordered", "scaled"]
)
def test_a_change_that_is_not_applied_to_answers_shows(tree, make):
    instance, solution = tree
    twin = make(instance, random.Random(3))
    assert symmetry.evaluated(twin, solution) == []
    forgotten = replace(twin, instance=instance, factor=Fraction(1))
    if twin.change.orders:
        assert symmetry.evaluated(forgotten, solution)
    else:
        assert forgotten.solution(solution).instance == instance.name
        assert twin.solution(solution).instance == twin.instance.name


def test_another_factor_shows(tree):
    instance, solution = tree
    made = (scaled(instance, random.Random(seed), 2.0, 20) for seed in range(9))
    twin = next(each for each in made if each.factor != 1)
    wrong = replace(twin, factor=twin.factor * 2)
    assert [line.partition(":")[0] for line in symmetry.evaluated(wrong, solution)] == ["in floats", "exactly"]


def test_a_bound_or_an_optimum_that_has_changed_shows(tree):
    twin = replace(scaled(tree[0], random.Random(3), 2.0, 20), factor=Fraction(2))
    one = Compared(tree[0], 0.0, {"a": Fraction(3)}, ["a"], {"a": Fraction(3)})
    other = Compared(twin.instance, 0.0, {"a": Fraction(6)}, ["a"], {"a": Fraction(6)})
    assert symmetry.merged(one, other, twin).contradictions() == []
    worse = replace(other, objectives={"a": Fraction(7)}, bounds={"a": Fraction(7)})
    assert symmetry.merged(one, worse, twin).contradictions() == [
        "bound 3.5 of a (twin), 3 of a",
        "optima 3 of a, 3.5 of a (twin)",
    ]
    none = Compared(twin.instance, 0.0, infeasible=["b"])
    assert symmetry.merged(one, none, twin).contradictions() == ["infeasible says b (twin), a has a solution"]


def test_a_method_that_refuses_a_name_shows(tree, monkeypatch):
    twin = renamed(tree[0], random.Random(3))
    assert symmetry.refusals(tree[0], twin.instance) == []
    greedy = type(method("tree-greedy", "aggregation"))
    monkeypatch.setattr(greedy, "refuses", lambda self, each: None if each == tree[0] else "a name")
    assert "tree-greedy refuses one: a name" in symmetry.refusals(tree[0], twin.instance)


def test_limits_are_what_a_solution_needs_or_a_hair_below():
    instance = generate("compression", "levels-random", 1, gradients=2)
    solution = method("uniform", "compression").solve(instance, Limits(1.0)).solution
    used = problem("compression/levels").evaluate(instance, solution).details["error"]
    made = [tight(instance, solution, random.Random(seed), 1) for seed in (0, 2, 5)]
    budgets = {each.instance.error_budget for each in made}
    assert min(budgets) == pytest.approx(used * (1 - 0.8e-9), rel=1e-12)
    assert max(budgets) == pytest.approx(used, rel=1e-12)
    assert len(budgets) == 3
    for each in made:
        assert problem("compression/levels").evaluate(each.instance, each.solution).feasible


def test_limits_are_raised_for_a_solution_that_breaks_them():
    name = "deployment/partition-tiny-n7-k2"
    instance, solution = instances.load(name), instances.best(name)
    kind = problem("deployment/partition")
    together = solution.model_copy(update={"devices": (0,) * instance.size, "instance_digest": None})
    assert [each.kind for each in kind.evaluate(instance, together).violations] == ["accelerator's memory suffices"]
    for seed in range(3):
        made = tight(instance, together, random.Random(seed))
        checked = kind.evaluate(made.instance, together)
        assert checked.feasible
        assert checked.details["largest_memory_bytes"] == pytest.approx(made.instance.memory_bytes, rel=2e-9)
    nowhere = solution.model_copy(update={"devices": (9,) * instance.size})
    assert tight(instance, nowhere, random.Random(0)) is None


def test_a_bound_that_leaves_out_what_just_fits_shows(monkeypatch):
    instance = generate("compression", "levels-random", 1, gradients=2)
    solution = method("uniform", "compression").solve(instance, Limits(1.0)).solution
    monkeypatch.setattr(symmetry, "answered", lambda each, *_: Compared(each, 0.0, infeasible=["somebody"]))
    count = {"twins": 0, "pairs": 0}
    found = symmetry.limited(instance, [solution], [], random.Random(0), Limits(1.0), False, count)
    (told,) = found
    assert [line.partition(": ")[2] for line in told] == ["infeasible says somebody, what it is made of has a solution"]


def test_parameters_of_each_job_and_groups_of_devices_come_in_another_order():
    hot = odd_instance("aggregation/hot", "unequal", 41)
    twin = reordered(hot, random.Random(1))
    answers = method("hot-frequency", "aggregation").solve(hot, Limits(1.0)).solution
    assert symmetry.evaluated(twin, answers) == []
    orders = [twin.change.orders[f"parameter of {place}"] for place in range(len(hot.jobs))]
    assert all(sorted(each) == list(range(len(each))) for each in orders)
    assert any(each != sorted(each) for each in orders)
    plan = odd_instance("deployment/plan", "ties", 41)
    twin = regrouped(plan, random.Random(5))
    order = twin.change.orders["device group"]
    assert order != sorted(order)
    for old, new in enumerate(order):
        assert twin.instance.device_groups[new] == plan.device_groups[old]
        for other, place in enumerate(order):
            assert twin.instance.bandwidth_bytes_per_s[new, place] == plan.bandwidth_bytes_per_s[old, other]
