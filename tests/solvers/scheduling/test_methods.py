"""Which heuristic the exact method opens with, and which method is taken where none is named."""

import numpy as np
import pytest
from gang_brute_force import gang_instance
from scheduling_brute_force import CONCAVE, brute_force, random_instance
from volume import for_each, some

from ddlopt.frontier.scheduling import methods as special
from ddlopt.instances.generators.scheduling import generate
from ddlopt.models import plugins
from ddlopt.solvers.catalogue import default_method, method
from ddlopt.solvers.contracts import Limits, Status
from ddlopt.solvers.scheduling import methods


def drawn(**features):
    return random_instance(np.random.default_rng(3), **{"utilities": CONCAVE} | features)


OPENINGS = {
    "gang-search": lambda: gang_instance([(4, 3), (8, 2), (5, 4)]),
    "job-plans": drawn,
    "fair-shares": lambda: drawn(objective="max_min"),
    "gadget": lambda: drawn(objective="completion"),
}
"""An instance for each, that those before it do not cover."""


@for_each("name", some(OPENINGS, OPENINGS.keys() - {"job-plans"}))
def test_exact_opens_with_the_best_heuristic_that_covers_the_instance(name):
    instance = OPENINGS[name]()
    result = method("exact", "scheduling").solve(instance, Limits())
    assert result.status is Status.OPTIMAL
    assert name in result.message.replace(":", "").replace(",", "").split()[:2]
    refused = [other for other in OPENINGS if method(other, "scheduling").refuses(instance) is not None]
    assert set(list(OPENINGS)[: list(OPENINGS).index(name)]) <= set(refused)
    assert default_method(instance) == "exact"


def test_without_the_frontier_gangs_are_listed_first(monkeypatch):
    instance = OPENINGS["gang-search"]()
    assert not methods.are_gangs(OPENINGS["job-plans"]())
    with_it = method("exact", "scheduling").solve(instance, Limits())
    monkeypatch.setenv(plugins.HIDDEN, "1")
    assert methods.opening(instance) == "list-scheduling"
    without = method("exact", "scheduling").solve(instance, Limits())
    assert without.status is Status.OPTIMAL
    assert without.objective == with_it.objective


@for_each("seed", some(range(6), (1, 3)))
def test_exact_after_job_plans_is_exact(seed):
    instance = random_instance(np.random.default_rng(seed), deadlines=bool(seed % 2), min_workers=bool(seed % 3))
    result = method("exact", "scheduling").solve(instance, Limits())
    assert result.status is Status.OPTIMAL
    assert result.objective == pytest.approx(brute_force(instance).objective, rel=1e-4, abs=1e-9)


@pytest.mark.parametrize(("kinds", "name"), [(CONCAVE, "lp-guided"), (("all_or_nothing",), "fair-shares")])
def test_long_windows_are_not_for_plans(kinds, name, monkeypatch):
    instance = drawn(utilities=kinds)
    monkeypatch.setattr(methods, "_EFFORT", methods.Effort(choices=10))
    assert default_method(instance) == "job-plans"
    monkeypatch.setattr(special, "_MOST_PLANS", 10)
    assert default_method(instance) == name


def test_beyond_the_exact_models_it_is_the_opening(monkeypatch):
    instance = generate("elastic", 1, jobs=6, slots=6, gpus=4)
    assert default_method(instance) == "exact"
    monkeypatch.setattr(methods, "_EFFORT", methods.Effort(choices=10))
    assert default_method(instance) == "job-plans"
