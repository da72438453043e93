"""The bound on makespans in rational numbers: no schedule ends before, and floats say no less."""

from fractions import Fraction

import pytest
from scheduling_brute_force import brute_force
from volume import for_each, some

from ddlopt import instances
from ddlopt.instances.generators.scheduling import generate
from ddlopt.models.errors import NotApplicableError
from ddlopt.models.scheduling import evaluate
from ddlopt.models.scheduling.bounds import bound
from ddlopt.models.scheduling.makespan.exact_bounds import exact_makespan_bound

MAKESPANS = [name for name in instances.names("scheduling") if instances.load(name).objective == "makespan"]
MET = ("scheduling/gangs-contention-j12-g16", "scheduling/gangs-contention-j38-g32", "scheduling/gangs-j80-g64")
"""Bundled instances whose best schedules end at the bound: by the longest job, and by areas."""


@pytest.mark.parametrize("name", MAKESPANS)
def test_no_schedule_of_the_library_ends_before(name):
    instance = instances.load(name)
    found, best = exact_makespan_bound(instance), instances.best(name)
    assert isinstance(found, Fraction)
    objective = evaluate(instance, best, exact=True).objective
    assert found == objective if name in MET else found <= objective
    assert found <= Fraction(bound(instance))


@for_each("seed, limited_by", some([(seed, limited) for seed in range(8) for limited in ("workers", "contention")], 3))
def test_trying_everything_ends_no_sooner(seed, limited_by):
    instance = generate("small", seed, limited_by=limited_by, jobs=3, slots=3, gpus=2)
    instance = instance.model_copy(update={"objective": "makespan"})
    best = brute_force(instance)
    if best is not None:
        assert exact_makespan_bound(instance) <= Fraction(best.objective)


def test_other_objectives_have_none():
    with pytest.raises(NotApplicableError, match="makespans and ratios only"):
        exact_makespan_bound(instances.load("scheduling/tiny-completion"))
