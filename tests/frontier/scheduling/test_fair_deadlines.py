"""``fair-deadlines``: never better than the optimum, bounds that hold, and refusals."""

import numpy as np
import pytest
from scheduling_brute_force import brute_force, random_instance
from volume import for_each, seeds

from ddlopt.frontier.scheduling.fair_deadlines import FairDeadlines
from ddlopt.instances import load
from ddlopt.models.errors import NotApplicableError
from ddlopt.solvers.contracts import Limits
from ddlopt.solvers.scheduling.gadget import Gadget
from ddlopt.solvers.scheduling.online.engine import UnfinishedError


@for_each("seed", seeds(4, 100))
def test_it_is_never_better_than_the_optimum(seed):
    asked = random_instance(
        np.random.default_rng(seed),
        slots=5,
        places=((4,), (2, 2))[seed % 2],
        objective="finish_time_fairness",
        min_workers=True,
        preemptive=seed % 3 != 0,
        network="star" if seed % 4 == 1 else None,
    )
    best = brute_force(asked)
    for exact in (False, True):
        try:
            found = FairDeadlines(exact).solve(asked, Limits(time_s=300))
        except UnfinishedError:
            assert not exact or best is None
            continue
        assert best.objective - 1e-9 <= found.objective
        assert found.bound <= best.objective + 1e-9
        if exact:
            assert found.objective == pytest.approx(best.objective, rel=1e-4)


def test_a_gang_waits_that_has_time():
    """Where all that counts is the least slack; the greedy of utilities finishes somebody later."""
    asked = load("scheduling/fairness-gangs-j38-g32")
    asked = asked.changed(jobs=asked.jobs[19:], servers=asked.servers[-1:])
    found = FairDeadlines(exact=False).solve(asked, Limits())
    assert found.objective < 1.5 < Gadget().solve(asked, Limits()).objective
    again = FairDeadlines(exact=False).solve(asked, Limits(time_s=1e-3), start=found.solution)
    assert again.solution is not None, "a start is lost"


@pytest.mark.slow
def test_plans_tell_that_not_all_deadlines_can_be_met():
    """They exclude 19/36 and meet 9/17, with no ratio between; the exact model does neither in a minute."""
    found = FairDeadlines().solve(load("scheduling/fairness-bursty-j40-g16"), Limits(time_s=120))
    assert found.objective == pytest.approx(9 / 17)
    assert found.bound == pytest.approx(9 / 17)
    assert found.details["models_solved"] == 0


def test_other_objectives_are_refused():
    with pytest.raises(NotApplicableError, match="the objective is 'utility'"):
        FairDeadlines().solve(load("scheduling/elastic-j10-t10-g8"), Limits())
