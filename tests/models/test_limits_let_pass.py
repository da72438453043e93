"""What a check lets pass of a limit: the same in floating point, in rational numbers and in stand-alone checkers."""

from fractions import Fraction
from importlib import import_module
from itertools import pairwise

import numpy as np
import pytest

import ddlopt
from ddlopt import instances
from ddlopt.models.catalogue import problem_of
from ddlopt.models.compression import LevelInstance
from ddlopt.models.compression.timeline.choices import as_timeline
from ddlopt.models.errors import InstanceError
from ddlopt.models.tolerances import (
    FEASIBILITY_TOL,
    left_let_pass,
    let_pass,
    let_pass_at_least,
    let_pass_at_most,
)

MEMORY = {
    "deployment/partition-tiny-n7-k2": lambda limit: {"memory_bytes": limit},
    "deployment/pipeline-tiny-l4-k4": lambda limit: {"memory_bytes": limit},
    "deployment/step-tiny-l4-k4": lambda limit: {"memory_bytes": limit},
    "deployment/microbatches-tiny-p2-n3": lambda limit: {"memory_bytes": (limit, limit)},
}


@pytest.mark.parametrize(("part", "passes"), [(0.9e-9, True), (1.1e-9, False)])
@pytest.mark.parametrize("name", MEMORY)
def test_all_checks_let_pass_the_same(name, part, passes):
    instance, answer = instances.load(name), instances.best(name)
    problem = problem_of(instance)
    details = problem.evaluate(instance, answer).details
    used = next(value for figure, value in details.items() if figure.endswith("memory_bytes"))
    answer = answer.model_copy(update={"instance_digest": None})
    tight = instance.model_copy(update=MEMORY[name](used / (1 + part)))
    assert [problem.evaluate(tight, answer, exact=exact).feasible for exact in (False, True)] == [passes, passes]
    alone = import_module(f"ddlopt.instances.checkers.{problem.path.replace('/', '_')}")
    _, broken = alone.check(tight.model_dump(mode="json"), answer.model_dump(mode="json"))
    assert (not broken) == passes


def test_of_pipelines_the_checks_let_pass_the_same_to_the_last_digit():
    """Exact methods count memory in fractions; in floating point the check let pass what they left out."""
    name = "deployment/pipeline-tiny-l4-k4"
    instance, answer = instances.load(name), instances.best(name)
    problem, told = problem_of(instance), []
    used = problem.evaluate(instance, answer).details["largest_memory_bytes"]
    answer = answer.model_copy(update={"instance_digest": None})
    limit = used / (1 + 1e-9) * (1 - 20 * np.finfo(float).eps)
    for _ in range(60):
        limit = np.nextafter(limit, np.inf)
        tight = instance.model_copy(update={"memory_bytes": float(limit)})
        both = [problem.evaluate(tight, answer, exact=exact).feasible for exact in (False, True)]
        assert both[0] == both[1]
        told.append(both[0])
    assert (told[0], told[-1]) == (False, True)


def test_a_budget_of_errors_in_decimals_is_no_less_than_the_least_of_them():
    """0.1 and 0.2 are more than 0.3; the check lets that pass, and the data were refused."""
    gradients = [
        {
            "name": f"{error}",
            "shape": [8, 8],
            "compressor": "powersgd",
            "curve": {"kind": "points", "levels": [1, 2], "errors": [1, error]},
            "wire_s_per_level": 1,
        }
        for error in (0.1, 0.2)
    ]
    levels = LevelInstance.from_data({"name": "decimals", "error_budget": 0.3, "gradients": gradients})
    for instance in (levels, as_timeline(levels)):
        found = ddlopt.solve(instance, "none")
        assert (found.objective, found.checked) == (4.0, True)
    with pytest.raises(InstanceError, match="no choice of levels has less than"):
        levels.changed(error_budget=0.3 * (1 - 2e-9))


def test_the_check_is_between_what_bounds_and_what_searches_are_told():
    for limit in (0.3, 5e12, Fraction(3, 10), np.array([0.3, 2.0])):
        ordered = [limit, let_pass_at_least(limit), let_pass(limit), let_pass_at_most(limit)]
        assert all(np.all(low < high) for low, high in pairwise(ordered))
    assert let_pass(Fraction(3)) == 3 * (1 + Fraction(1e-9))
    parts = [raised(Fraction(1)) - 1 for raised in (let_pass_at_least, let_pass, let_pass_at_most)]
    assert parts == [Fraction(FEASIBILITY_TOL) * part for part in (Fraction(1, 2), 1, 2)]
    assert let_pass(0.0) == let_pass_at_most(0.0) == 0
    # Of what is left, half of the tolerance of the whole is more than a part of the rest.
    assert let_pass(1.0 - 0.9) < left_let_pass(1.0 - 0.9, 1.0) < let_pass(1.0) - 0.9
