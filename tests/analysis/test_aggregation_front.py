"""Fronts of two goals: hand-made cases, and all answers one by one."""

from typing import Any

import pytest
from aggregation_graph_cases import answers, random_instance, star

from ddlopt.analysis.aggregation_front import front
from ddlopt.models.aggregation import evaluate
from ddlopt.models.errors import OptionError


def points(instance: Any, over: Any) -> list[tuple[int, float]]:
    return [(point.used, point.objective) for point in front(instance, over)]


def test_the_front_of_the_star() -> None:
    assert points(star(goal="utilization"), "aggregators") == [
        (2, pytest.approx(10.0)),
        (1, pytest.approx(12.0)),
        (0, pytest.approx(16.0)),
    ]
    # All that fewer connections need, fewer messages need, too.
    assert points(star(goal="utilization"), "connections") == [(1, pytest.approx(10.0))]
    assert points(star(goal="utilization", aggregators=0), "connections") == [(3, pytest.approx(16.0))]
    with pytest.raises(OptionError, match="not over 'slots'"):
        front(star(), "slots")  # type: ignore[arg-type]


def test_no_answer_is_below_the_front() -> None:
    for seed in (1, 8, 24, 36):
        instance = random_instance(seed, goal="utilization", aggregators=None, connections=None)
        found = dict(points(instance, "aggregators"))
        checks = [evaluate(instance, each) for each in answers(instance)]
        sound = [(int(c.details["aggregators"]), float(c.objective or 0)) for c in checks if c.feasible]
        for used, objective in sound:
            allowed = [value for count, value in found.items() if count <= used]
            assert min(allowed) <= objective * (1 + 1e-6)
        assert all(any(u <= used and o <= value * (1 + 1e-6) for u, o in sound) for used, value in found.items())
