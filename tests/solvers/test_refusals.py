"""What a method refuses it refuses when it is asked to solve it, too, in a line and not with a crash."""

import pytest

from ddlopt.instances.odd import odd_instance
from ddlopt.models.catalogue import FAMILY_NAMES, problems
from ddlopt.models.errors import NotApplicableError
from ddlopt.solvers.catalogue import own_entries
from ddlopt.solvers.contracts import Limits
from ddlopt.solvers.exact import Exact


@pytest.mark.parametrize("family", FAMILY_NAMES)
def test_every_method_refuses_what_it_does_not_cover(family):
    refused = 0
    for path in problems():
        if path.partition("/")[0] != family:
            continue
        for setting, seed in ((None, 0), ("zeros", 3), ("unequal", 4)):
            instance = odd_instance(path, setting, seed)
            for entry in own_entries(family):
                method = entry.make("highs")
                reason = method.refuses(instance)
                if reason is None:
                    continue
                refused += 1
                assert "\n" not in reason, (entry.name, path)
                with pytest.raises(NotApplicableError, match=r"."):
                    method.solve(instance, Limits(time_s=1.0))
    assert refused or family == "codesign"  # whose methods cover all small instances


def test_formulations_refuse_what_is_of_another_family():
    made = [entry.make("highs") for entry in own_entries()]
    formulations = [(each.family, each.formulation) for each in made if isinstance(each, Exact)]
    instances = [odd_instance(path, None, 0) for path in ("topology", "scheduling", "codesign", "gossip/circulant")]
    for family, formulation in formulations:
        for instance in instances:
            assert instance.family == family or formulation.refuses(instance), (formulation, instance.family)
    assert {family for family, _ in formulations} == set(FAMILY_NAMES)
