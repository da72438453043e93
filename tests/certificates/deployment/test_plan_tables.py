"""Tables and counts of proofs for plans: what they are by definition."""

from fractions import Fraction
from math import floor

import numpy as np
import pytest
from deployment_plans import random_instance
from refusals import one_line
from volume import for_each

from ddlopt import instances
from ddlopt.certificates.deployment.plan import PlanCertificate, choices
from ddlopt.certificates.deployment.plan.choices import choices_of
from ddlopt.certificates.deployment.plan.tables import tables_of
from ddlopt.models.errors import NotApplicableError
from ddlopt.models.tolerances import FEASIBILITY_TOL

TINY = instances.load("deployment/tiny-g3-m2-s2")
GOOD = PlanCertificate(TINY.name, TINY.digest, Fraction(689, 10_000), [2, 0, 1])


def test_choices_are_counted_before_they_are_listed(monkeypatch):
    """Each operator on any device; or all on some device groups, split in two ways, by a server or all-reduced."""
    some = 2 ** len(TINY.device_groups) - 1
    for group, members in enumerate(TINY.members):
        count = TINY.devices ** len(members) + some * 2 * (1 + 2 ** len(members))
        assert len(choices_of(TINY, group)) <= count
        with monkeypatch.context() as patch:
            patch.setattr(choices, "MOST_CHOICES", count)
            choices_of(TINY, group)
            patch.setattr(choices, "MOST_CHOICES", count - 1)
            with one_line(NotApplicableError, f"has {count} choices; {count - 1} are looked at at most"):
                choices_of(TINY, group)


def test_every_choice_is_counted():
    every = sum(len(choices_of(TINY, group)) for group in range(TINY.groups))
    assert GOOD.check(TINY, lambda: False) > every
    assert GOOD.check(TINY, lambda: True) == 0
    assert PlanCertificate(TINY.name, TINY.digest, Fraction(0), [0, 1, 2]).check(TINY, lambda: False) == 0


@for_each("seed", range(6))
def test_what_comes_after_an_operator_is_the_longest_way(seed):
    instance = random_instance(np.random.default_rng(seed), operators=7, most_devices=2)
    known = [choices_of(instance, group) for group in range(instance.groups)]
    tables = tables_of(instance, known, Fraction(1))

    def after(place):
        return max((tables.least[reader] + after(reader) for reader in instance.readers[place]), default=0)

    assert tables.after.tolist() == [after(place) for place in range(len(instance.operators))]


@pytest.mark.parametrize("memory_bytes", [2.0**30, 1e12])
def test_memory_is_what_the_check_lets_pass(memory_bytes):
    groups = tuple(group.model_copy(update={"memory_bytes": memory_bytes}) for group in TINY.device_groups)
    instance = TINY.model_copy(update={"device_groups": groups})
    known = [choices_of(instance, group) for group in range(instance.groups)]
    most = floor(Fraction(memory_bytes) * (1 + Fraction(FEASIBILITY_TOL)))
    assert most > memory_bytes
    assert tables_of(instance, known, Fraction(1)).memory.tolist() == [most] * instance.devices
