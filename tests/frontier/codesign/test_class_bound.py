"""The bound by all choices that come into question, against all plans of drawn jobs."""

import itertools

import numpy as np
import pytest
from codesign_cases import best_of_all, drawn
from volume import for_each, slow

from ddlopt import instances
from ddlopt.frontier.codesign.classes import classes_below
from ddlopt.frontier.codesign.joint import class_bound as module
from ddlopt.frontier.codesign.joint.class_bound import bound_by_classes
from ddlopt.instances.generators.codesign.random import random_job
from ddlopt.models.codesign.demand import demand_of
from ddlopt.models.codesign.tables import tables_of
from ddlopt.solvers.contracts import Limits
from ddlopt.solvers.heuristic import Clock

CLOCK = Clock(Limits(), None)


@for_each("seed", [4, *map(slow, set(range(40)) - {4})])
@pytest.mark.parametrize("above", [1.05, 0.999])
def test_no_plan_is_excluded(seed, above):
    instance = drawn(seed, 4, 3)
    best = best_of_all(instance)
    if np.isfinite(best):
        bound = bound_by_classes(instance, best * above, 0, CLOCK)
        assert bound <= best * min(1.0, above) * (1 + 1e-6)


def first_identical(tables):
    """Patterns with the same parts are one."""
    units = [pattern.unit.toarray().round(12).tobytes() for pattern in tables.patterns]
    return [units.index(unit) for unit in units]


@pytest.mark.parametrize("name", ["tiny-drawn-n5-d2", "tiny-tables-n4-d2", "tiny-memory-n4-d2"])
def test_all_choices_of_little_time_that_fit_are_of_a_class(name):
    instance = instances.load(f"codesign/{name}")
    tables, most = tables_of(instance), 1.02 * instances.record(f"codesign/{name}").found.objective
    classes = classes_below(instance, most, 10**6)
    first, met = first_identical(tables), 0
    for choices in filter(tables.fits, itertools.product(*map(range, tables.sizes))):
        reduced, moved = tables.bytes_of(choices)
        compute_s, load = tables.compute_of(choices), demand_of(tables).least_bytes(np.concatenate([reduced, moved]))
        if instance.iteration_time_s(compute_s, load) <= most:
            met += 1
            moved = np.bincount(first, weights=moved, minlength=len(moved))
            assert any(
                np.allclose(each.reduced, reduced) and np.allclose(each.moved, moved) and each.compute_s <= compute_s
                for each in classes
            )
    assert met


def test_choices_that_take_too_much_memory_are_of_no_class():
    instance = instances.load("codesign/tiny-memory-n4-d2")
    most = 1.02 * instances.record("codesign/tiny-memory-n4-d2").found.objective
    roomy = instance.model_copy(update={"device": instance.device.model_copy(update={"memory_bytes": None})})
    assert len(classes_below(instance, most, 10**6)) < len(classes_below(roomy, most, 10**6))


@pytest.mark.parametrize("budget", ["nothing", "its own", None])
def test_choices_that_lose_too_much_are_of_no_class_and_all_others_of_one(budget):
    options = {"servers": 3, "degree": 1, "layers": 3, "strategies": 2, "reduction": 0.9, "compressors": 2}
    own = random_job(np.random.default_rng(4), error_slack=0.5, **options)
    instance = own.changed(error_budget={"nothing": 0.0, "its own": own.error_budget}.get(budget))
    tables, most = tables_of(instance), 1e9
    classes, roomy = (classes_below(each, most, 10**6) for each in (instance, own.changed(error_budget=None)))
    sent = {tuple(np.concatenate([each.reduced, each.moved]).round(3)) for each in classes}
    met, first = set(), first_identical(tables)
    for choices in filter(tables.fits, itertools.product(*map(range, tables.sizes))):
        reduced, moved = tables.bytes_of(choices)
        moved = np.bincount(first, weights=moved, minlength=len(moved))
        met.add(tuple(np.concatenate([reduced, moved]).round(3)))
    assert met
    assert met <= sent
    assert (len(classes) < len(roomy)) == (budget is not None)


def test_a_bound_that_is_asked_for_when_the_time_is_up_is_none_at_all(monkeypatch):
    monkeypatch.setattr(module, "_EFFORT", module.Effort(classes=1))
    clock = Clock(Limits(1e-9), None)
    instance = instances.load("codesign/tiny-tables-n4-d2")
    assert (
        0 <= bound_by_classes(instance, 1e3, 0, clock) <= instances.record("codesign/tiny-tables-n4-d2").found.objective
    )


def test_too_many_classes_are_none():
    instance = instances.load("codesign/tiny-tables-n4-d2")
    assert classes_below(instance, 1e3, 3) is None


def test_several_readers_or_full_overlap_are_no_tree():
    assert classes_below(instances.load("codesign/tiny-overlap-n4-d2"), 1e3, 10**6) is None


@slow
def test_all_choices_of_candle_are_excluded():
    instance, record = (call("codesign/candle-n12-d4") for call in (instances.load, instances.record))
    target = record.found.objective * (1 - 1e-3)
    assert bound_by_classes(instance, target, 0, CLOCK) == target
