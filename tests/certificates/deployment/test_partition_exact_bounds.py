"""The least load of contiguous partitions in whole numbers is that of trying all of them."""

from fractions import Fraction

import pytest
from partition_cases import optimum, several
from volume import for_each, slow

from ddlopt import instances
from ddlopt.certificates.deployment.partition.exact_bounds import exact_partition_bound
from ddlopt.models.deployment.partition.evaluate import evaluate_partition
from ddlopt.models.errors import InfeasibleError, NotApplicableError


@for_each("first, count, more", [(2000, 30, {}), slow(5000, 300, {}), slow(9000, 60, {"processors": 0})])
def test_it_is_the_least_of_all_contiguous_partitions(first, count, more):
    infeasible = 0
    for instance in several(count, first, contiguous=True, **more):
        best = optimum(instance)
        if best is None:
            infeasible += 1
            with pytest.raises(InfeasibleError, match="no contiguous partition"):
                exact_partition_bound(instance)
        else:
            assert float(exact_partition_bound(instance)) == pytest.approx(best, rel=1e-12, abs=1e-15)
    assert 0 < infeasible < count


@pytest.mark.parametrize("name", ["stages-n60-k4", "stages-training-n80-k6", slow("stages-branches-n150-k8")])
def test_the_best_known_stages_have_it(name):
    instance, best = instances.load(f"deployment/{name}"), instances.best(f"deployment/{name}")
    found = exact_partition_bound(instance)
    assert isinstance(found, Fraction)
    assert found == evaluate_partition(instance, best, exact=True).objective


@pytest.mark.parametrize("name", ["latency-tiny-n6-k2", "partition-tiny-n7-k2", "partition-passes-n30-k3"])
def test_other_partitions_have_none(name):
    with pytest.raises(NotApplicableError, match="contiguous partitions only"):
        exact_partition_bound(instances.load(f"deployment/{name}"))
