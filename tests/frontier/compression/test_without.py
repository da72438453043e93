"""Timelines with the frontier hidden: the model answers, and the bound is the closed form."""

import numpy as np
import pytest
from timeline_brute_force import brute_force, random_timeline_case

import ddlopt
from ddlopt.models import plugins
from ddlopt.models.catalogue import problem_of
from ddlopt.models.compression.timeline.bounds import timeline_bound
from ddlopt.models.errors import InfeasibleError


@pytest.fixture
def hidden(monkeypatch):
    monkeypatch.setenv(plugins.HIDDEN, "1")


def timelines(goal):
    drawn = (random_timeline_case(np.random.default_rng(seed)) for seed in range(30))
    return [each for each in drawn if each.goal == goal and np.isfinite(brute_force(each)[0])]


def test_the_model_answers_timelines(hidden):
    limited = [each for each in timelines("time") if each.error_budget is not None]
    for instance in (*limited[:4], *timelines("error")[:2]):
        found = ddlopt.solve(instance, gap=1e-6)
        assert found.proved_by in ("overlap-timeline", "combinatorial")
        assert found.objective == pytest.approx(brute_force(instance)[0], rel=1e-5)


def test_the_model_chooses_options_before_a_forward_pass(hidden):
    instance = ddlopt.generate("compression", "forward-random", seed=3, gradients=4)
    without = ddlopt.solve(instance, "forward-search")
    assert without.objective >= without.bound * (1 - 1e-9)
    options = ddlopt.solve(instance, "wfbp:compressed=true")
    assert options.checked
    assert without.objective <= options.objective


def test_what_the_frontier_adds_to_the_bound(monkeypatch):
    sharper = 0
    for instance in timelines("time")[:8]:
        problem, own = problem_of(instance), timeline_bound(instance)
        found = problem.tightest_bound(instance)
        assert own <= found <= brute_force(instance)[0] * (1 + 1e-9)
        sharper += found > own * (1 + 1e-6)
        with monkeypatch.context() as patched:
            patched.setenv(plugins.HIDDEN, "1")
            assert problem.tightest_bound(instance) == own
    assert sharper > 0


def test_a_time_budget_that_nothing_keeps_is_seen(hidden):
    instance = timelines("error")[0]
    fastest = timeline_bound(instance.model_copy(update={"goal": "time", "time_budget_s": None}))
    short = type(instance).model_validate(instance.model_dump() | {"time_budget_s": 0.9 * fastest})
    with pytest.raises(InfeasibleError, match="no choice keeps the time budget"):
        timeline_bound(short)
