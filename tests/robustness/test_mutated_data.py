"""Solutions and instances that nobody wrote on purpose: refused in one line, or checked; never more than they are.

`pytest tests/robustness/test_mutated_data.py -m slow -s` prints how many were tried, refused, and passed.
"""

import json
import math
from collections import Counter

import pytest
from hypothesis import given
from robustness.mutations import mutated, volume
from volume import for_each, slow

from ddlopt import instances
from ddlopt.analysis.views import sizes
from ddlopt.instances import index
from ddlopt.models.catalogue import family
from ddlopt.models.errors import DdloptError, InfeasibleError

DEFAULT, MANY = 4, 1500
COUNTS = Counter()


def smallest():
    """The smallest bundled instance with a known solution of each problem."""
    listed = index.read()
    for problem in listed.problems:
        own = {name: each for name, each in listed.instances.items() if each.problem == problem and each.found_by}
        yield min(own, key=lambda name: own[name].size)


NAMES = list(smallest())


def one_line_of(problem):
    """What is said of a refusal."""
    text = str(problem)
    assert text
    assert text.isprintable()
    return text


def one_line(problem):
    """That it is refused."""
    one_line_of(problem)
    return "refused"


def judged(instance, kind, data):
    """What becomes of a solution's data: refused, infeasible, or feasible."""
    try:
        solution = kind.solution.from_data(data)
        solution.belongs_to(instance)
        evaluations = [kind.evaluate(instance, solution, exact=exact) for exact in (False, True)]
    except DdloptError as problem:
        return one_line(problem)
    for evaluation in evaluations:
        if evaluation.feasible:
            assert evaluation.objective is not None
            assert math.isfinite(evaluation.objective)
        assert all(math.isfinite(float(value)) for value in evaluation.details.values()) or not evaluation.feasible
        for violation in evaluation.violations:
            one_line(violation)
    assert json.loads(solution.to_json())
    return "feasible" if evaluations[1].feasible else "infeasible"


def test_names_in_violations_are_shown_and_not_obeyed():
    instance, kind = instances.load("codesign/tiny-duplex-n4-d3"), family("codesign")
    best = instances.best("codesign/tiny-duplex-n4-d3")
    strategies = ("\x1b[31m", *best.strategies[1:])
    (violation,) = kind.evaluate(instance, best.model_copy(update={"strategies": strategies})).violations
    assert "'\\x1b[31m'" in one_line_of(violation)


@for_each(("name", "examples"), [*((name, DEFAULT) for name in NAMES), *(slow(name, MANY) for name in NAMES)])
def test_mutated_solutions(name, examples):
    instance, kind = instances.load(name), family(name.split("/")[0])
    best = instances.best(name)
    known = kind.evaluate(instance, best, exact=True).objective
    data, counts = json.loads(best.to_json()), Counter()

    @volume(examples)
    @given(mutated(data))
    def holds(changed):
        counts[judged(instance, kind, changed)] += 1

    holds()
    COUNTS.update(counts)
    print(f"\nsolutions of {name}: {dict(counts)}; in all {dict(COUNTS)}")
    assert known is not None


@for_each(("name", "examples"), [*((name, DEFAULT) for name in NAMES), *(slow(name, MANY) for name in NAMES)])
def test_mutated_instances(name, examples):
    """What passes has sizes, a bound or none, and the same data after a round trip."""
    kind = family(name.split("/")[0])
    data, counts = json.loads(instances.load(name).to_json()), Counter()

    @volume(examples)
    @given(mutated(data))
    def holds(changed):
        try:
            instance = kind.instance.from_data(changed)
        except DdloptError as problem:
            counts[one_line(problem)] += 1
            return
        assert kind.instance.from_json(instance.to_json()).digest == instance.digest
        assert sizes(instance)
        try:
            bound = kind.bound(instance)
            assert bound is None or math.isfinite(bound)
            counts["passed"] += 1
        except InfeasibleError as problem:
            one_line(problem)
            counts["infeasible"] += 1

    holds()
    print(f"\ninstances like {name}: {dict(counts)}")


def test_each_problem_is_tried():
    assert len(NAMES) == len(index.read().problems)


@for_each("figure", [math.nan, math.inf])
@for_each("place", [(0, 0), (0, 1)])
def test_bandwidths_of_plans_are_finite(figure, place):
    """Found by mutated instances: those within a group of devices were not looked at."""
    data = json.loads(instances.load("deployment/tiny-g2-m2-s1").to_json())
    data["bandwidth_bytes_per_s"][place[0]][place[1]] = figure
    with pytest.raises(DdloptError, match="every figure must be finite"):
        family("deployment").instance.from_data(data)


@pytest.mark.parametrize("node", [0, 2])
def test_usages_of_strategies_are_finite(node):
    """Found by mutated instances: infinite is what costs may be, where a strategy is forbidden."""
    data = json.loads(instances.load("deployment/strategies-training-l4").to_json())
    data["usages"][node][-1] = math.inf
    with pytest.raises(DdloptError, match=rf"usages\[{node}\] has inf; every usage must be finite"):
        family("deployment").instance.from_data(data)
