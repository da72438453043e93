"""The hot set: data, the check, what parameters save, the bound."""

import json
from fractions import Fraction

import hot_cases
import numpy as np
import pytest
from refusals import one_line
from scipy.optimize import linprog
from volume import for_each, seeds

from ddlopt.models.aggregation import AggregationProblem, HotInstance, evaluate
from ddlopt.models.aggregation.hot.bounds import hot_bound
from ddlopt.models.aggregation.hot.items import items_of
from ddlopt.models.aggregation.hot.values import groups_of, saved_messages
from ddlopt.models.errors import InstanceError, SolutionError

DATA = {
    "family": "aggregation",
    "problem": "hot",
    "name": "two",
    "jobs": [
        {"name": "a", "workers": 3, "frequencies": [0.5, 1.0, 0.25], "registers": [1, 2, 3]},
        {
            "name": "b",
            "workers": 2,
            "frequencies": [0.5, 0.5],
            "registers": 2,
            "iterations_per_s": 4.0,
            "saved_messages": [0.5, 0.25],
        },
    ],
    "switches": [{"name": "s", "registers": 5}, {"name": "t", "registers": 4, "workers": [2, 0]}],
}


def changed(*path, value) -> dict:
    data = json.loads(json.dumps(DATA))
    inner = data
    for key in path[:-1]:
        inner = inner[key]
    inner[path[-1]] = value
    return data


def test_reading_gives_the_class_of_the_problem() -> None:
    instance = AggregationProblem.from_data(DATA)
    assert isinstance(instance, HotInstance)
    assert instance.size == 5
    assert instance.passing == ((3, 2), (2, 0))
    assert instance.jobs[1].widths.tolist() == [2, 2]
    assert (instance.sense, instance.objective_unit) == ("maximize", "")


@for_each(
    ("data", "message"),
    [
        (changed("jobs", 0, "frequencies", value=[0.5, 1.25, 0]), "frequencies[1] is 1.25; a probability is in 0..1"),
        (changed("jobs", 0, "frequencies", value=[0.5, "x", 0]), "[1] is 'x'; expected a list of numbers"),
        (changed("jobs", 0, "frequencies", value=[0.5, True, 0]), "[1] is True; expected a list of numbers"),
        (changed("jobs", 0, "frequencies", value=[]), "frequencies is empty"),
        (changed("jobs", 0, "frequencies", value=0.5), "expected a list of numbers"),
        (changed("jobs", 0, "registers", value=[1, 2]), "registers has 2 numbers, but there are 3 frequencies"),
        (changed("jobs", 0, "registers", value=[1, 0, 1]), "registers[1] is 0; a parameter takes at least 1"),
        (changed("jobs", 0, "registers", value=1.5), "expected a list of whole numbers"),
        (changed("jobs", 0, "registers", value=[1, 2.5, 1]), "[1] is 2.5; expected a list of whole numbers"),
        (changed("jobs", 0, "registers", value=2**70), "registers is 1180591620717411303424; whole numbers go up"),
        (changed("jobs", 0, "labels", value=["x"]), "labels has 1 names for 3 frequencies"),
        (changed("jobs", 1, "saved_messages", value=[0.5]), "saved_messages has 1 numbers"),
        (changed("jobs", 1, "saved_messages", value=[0.5, 1.5]), "saved_messages[1] is 1.5; of the messages of 2"),
        (changed("jobs", 0, "workers", value=0), "greater than or equal to 1"),
        (changed("switches", 1, "workers", value=[2]), "switches[1] ('t').workers has 1 numbers for 2 jobs"),
        (changed("switches", 1, "workers", value=[4, 0]), "workers[0] is 4, but job 'a' has 3 workers"),
        (changed("switches", 1, "workers", value=[2, 1]), "what job 'b' saves was measured with all workers"),
        (changed("switches", value=[]), "at least 1 item"),
    ],
)
def test_bad_data_is_refused_in_one_line(data: dict, message: str) -> None:
    with one_line(InstanceError, message):
        AggregationProblem.from_data(data)


def test_the_objective_by_hand() -> None:
    instance = HotInstance.from_data(DATA)
    answer = hot_cases.all_of(instance, placed=[[[1], [0]], [[0], []]])
    # a1 on s: 2 x (3 - 1); b0 on s: 4 x 2 x 0.5; a0 on t, which 2 workers pass: 1 - 0.75.
    for exact in (False, True):
        check = evaluate(instance, answer, exact)
        assert check.feasible
        assert check.objective == 4 + 4 + 0.25
        assert check.details["parameters"] == 3
        assert check.details["registers"] == 5
        assert check.details["ingress_share"] == pytest.approx(8.25 / (3 * (0.5 + 2 + 0.75) + 4 * 2 * 2))
    assert isinstance(check.objective, Fraction)


@for_each(
    ("placed", "kind", "meaningful"),
    [
        ([[[1], [0]]], "every switch has its sets", False),
        ([[[1]], [[0], []]], "a switch has a set of each job", False),
        ([[[3], []], [[], []]], "parameter exists", False),
        ([[[-1], []], [[], []]], "parameter exists", False),
        ([[[1], []], [[1], []]], "a parameter is on one switch", True),
        ([[[0, 0], []], [[], []]], "a parameter is on one switch", True),
        ([[[1, 2], []], [[0], []]], None, True),
        ([[[1, 2], [0]], [[], []]], "registers suffice", True),
        ([[[], []], [[1, 2], []]], "registers suffice", True),
    ],
)
def test_what_a_set_may_violate(placed: list, kind: str | None, meaningful: bool) -> None:
    instance = HotInstance.from_data(DATA)
    check = evaluate(instance, hot_cases.all_of(instance, placed=placed))
    assert [violation.kind for violation in check.violations] == ([kind] if kind else [])
    assert (check.objective is not None) is meaningful


def test_answers_that_are_none() -> None:
    instance = HotInstance.from_data(DATA)
    with pytest.raises(SolutionError, match=r"\[0\] is 1.5"):
        hot_cases.all_of(instance, placed=[[[1.5], []], [[], []]])


@for_each("workers", [1, 2, 3, 8, 64, 1000])
def test_saved_messages_have_all_their_digits(workers: int) -> None:
    p = np.concatenate([10.0 ** -np.arange(13), [0.5, 0.999, 0.1 / workers, 0.0999 / workers, 0.0]])
    exact = [workers * Fraction(each) - (1 - (1 - Fraction(each)) ** workers) for each in p.tolist()]
    assert saved_messages(p, workers) == pytest.approx([float(each) for each in exact], rel=2e-14, abs=0)


def test_the_check_has_all_digits_of_rare_parameters() -> None:
    data = changed("jobs", 0, "frequencies", value=[1e-9, 3e-7, 1e-12])
    instance = HotInstance.from_data(data)
    answer = hot_cases.all_of(instance, placed=[[[0, 1], []], [[2], []]])
    exact = hot_cases.exact_value(instance, answer)
    assert evaluate(instance, answer).objective == pytest.approx(exact, rel=1e-12, abs=0)


@for_each("seed", seeds(6, 30))
def test_the_bound_is_that_of_the_linear_relaxation(seed: int) -> None:
    instance = hot_cases.drawn(seed, jobs=1 + seed % 3, switches=1 + seed % 4, most=12)
    items = items_of(instance, groups_of(instance))
    count, switches = items.values.shape
    if not count:
        assert hot_bound(instance) == 0
        return
    once = np.kron(np.eye(count), np.ones(switches))
    fits = np.kron(items.width, np.eye(switches))
    limits = np.concatenate([np.ones(count), [switch.registers for switch in instance.switches]])
    relaxed = linprog(-items.values.ravel(), A_ub=np.concatenate([once, fits]), b_ub=limits, bounds=(0, None))
    assert hot_bound(instance) == pytest.approx(-relaxed.fun, rel=1e-6, abs=1e-9)
    assert hot_bound(instance) >= -relaxed.fun * (1 - 1e-9)


@for_each("seed", range(12))
def test_the_bound_holds_for_the_best_set(seed: int) -> None:
    instance = hot_cases.drawn(100 + seed, jobs=2, switches=1 + seed % 2, most=4)
    assert hot_bound(instance) >= float(hot_cases.best_by_enumeration(instance)) * (1 - 1e-12)
