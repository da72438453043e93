"""The search under a bound: against the optimum of tiny jobs and the best known plans, with plans and without."""

import math

import numpy as np
import pytest
from volume import seeds, spread

import ddlopt
from ddlopt import instances
from ddlopt.analysis.certify import best_known
from ddlopt.instances.generators.codesign.random import random_job
from ddlopt.models import plugins
from ddlopt.models.codesign import evaluate, job_of
from ddlopt.models.codesign.tables import tables_of
from ddlopt.models.errors import NoSolutionError, OptionError
from ddlopt.models.topology import evaluate as evaluate_design
from ddlopt.solvers.codesign import bound_guided
from ddlopt.solvers.codesign.bound_guided import BoundGuided, Effort, _Search
from ddlopt.solvers.codesign.data_parallel import data_parallel
from ddlopt.solvers.codesign.quick_links import quick_links
from ddlopt.solvers.codesign.topoopt.alternating import Alternating
from ddlopt.solvers.contracts import Limits, Status
from ddlopt.solvers.heuristic import Clock

QUICK = BoundGuided(effort=0.02)
TINY = [name for name in instances.names("codesign") if "/tiny-" in name and "cosets" not in name]


@pytest.fixture(autouse=True)
def _without_the_frontier(monkeypatch):
    monkeypatch.setenv(plugins.HIDDEN, "1")


@pytest.mark.parametrize("name", spread(TINY, 3))
def test_tiny_jobs_are_within_a_percent_of_the_best_known(name):
    instance = ddlopt.load(name)
    known = float(evaluate(instance, best_known(instance)).objective)
    result = QUICK.solve(instance, Limits())
    assert evaluate(instance, result.solution).feasible
    assert result.bound <= known * (1 + 1e-6)
    assert result.objective <= 1.01 * known


@pytest.mark.parametrize("seed", seeds(1, 10))
def test_it_is_no_worse_than_topoopt_and_keeps_a_plan(seed):
    instance = random_job(np.random.default_rng(seed), servers=5, degree=2, layers=4, strategies=3)
    published = Alternating().solve(instance, Limits(), seed)
    found = QUICK.solve(instance, Limits(), seed)
    assert found.objective <= published.objective * (1 + 1e-9)
    assert QUICK.solve(instance, Limits(), seed).solution == found.solution
    again = QUICK.solve(instance, Limits(), seed + 1, start=found.solution)
    assert again.objective <= found.objective * (1 + 1e-9)


def test_the_program_for_everything_closes_the_gap_of_few_servers():
    result = ddlopt.solve("codesign/tiny-tables-n4-d2", "exact")
    assert result.status is Status.OPTIMAL


def test_a_proposal_has_not_been_tried():
    instance = random_job(np.random.default_rng(4), servers=4, degree=2, layers=2, strategies=2)
    search = _Search(instance, Clock(Limits(gap=1e-6), None), 0, Effort(links=(0.0,)))
    search._open(None)
    proposed = []
    while (choices := search._propose()) is not None:
        assert choices not in search.known
        proposed.append(choices)
        search._try(choices)
    assert len(set(proposed)) == len(proposed) <= math.prod(tables_of(instance).sizes)
    assert search.best_s == min(each.time_s for each in search.known.values())


def test_effort_is_positive():
    with pytest.raises(OptionError, match="effort"):
        BoundGuided(effort=0)


def test_memory_that_never_suffices_is_proven():
    instance = ddlopt.load("codesign/tiny-memory-n4-d2")
    device = instance.device.model_copy(update={"memory_bytes": 1.0})
    result = BoundGuided().solve(instance.model_copy(update={"device": device}), Limits())
    assert result.status is Status.INFEASIBLE


def test_without_links_for_anything_there_is_no_plan(monkeypatch):
    def none(*_):
        raise NoSolutionError("none")

    monkeypatch.setattr(bound_guided, "quick_links", none)
    monkeypatch.setattr(bound_guided, "answer_topology", none)
    monkeypatch.setattr(bound_guided.Alternating, "answer", none)
    instance = random_job(np.random.default_rng(3), servers=3, degree=2, layers=2, strategies=2)
    result = QUICK.solve(instance, Limits())
    assert result.solution is None
    assert result.status is Status.NO_SOLUTION


@pytest.mark.parametrize("optics", ["one_way", "duplex"])
def test_quick_links_serve_the_job_with_the_load_they_tell(optics):
    instance = random_job(np.random.default_rng(7), servers=8, degree=4, layers=4, strategies=3, optics=optics)
    job = job_of(instance, data_parallel(instance))
    design, busiest = quick_links(job, 0, None, Clock(Limits(), None), 6)
    checked = evaluate_design(job, design)
    assert checked.feasible
    assert checked.details["max_link_load_bytes"] == pytest.approx(busiest, rel=1e-6)
    _, again = quick_links(job, 0, design, Clock(Limits(), None), 6)
    assert again <= busiest * (1 + 1e-3)


def test_effort_is_spent_level_by_level():
    instance = ddlopt.load("codesign/tiny-overlap-n4-d2")
    search = _Search(instance, Clock(Limits(gap=0.0), None), 0, Effort(links=(0.0, 0.001)))
    search._open(None)
    while search._deepen(1.02):
        pass
    assert max(each.level for each in search.known.values()) == 2
    assert not search._deepen(1.02)


def test_a_choice_whose_first_links_were_bad_has_more_of_them_once_nothing_else_is_left():
    instance = ddlopt.load("codesign/tiny-overlap-n4-d2")
    search = _Search(instance, Clock(Limits(gap=0.0), None), 0, Effort(links=(0.0, 0.02)))
    search.run(None)
    assert all(each.level == 2 for each in search.known.values() if each.time_s <= search.best_s * 1.5)
