"""Bounds and checks of plans and strategies on a few operators, by hand."""

import pytest

from ddlopt import instances
from ddlopt.models.deployment import DeploymentInstance
from ddlopt.models.deployment.plan.bounds import plan_bound
from ddlopt.models.deployment.plan.evaluate import evaluate_plan
from ddlopt.models.deployment.strategies.bounds import cheapest_bound
from ddlopt.models.deployment.strategies.evaluate import evaluate_strategies
from ddlopt.models.deployment.strategies.instance import StrategyAssignment, StrategyInstance
from ddlopt.models.tolerances import FEASIBILITY_TOL

TINY = instances.load("deployment/tiny-g3-m2-s2")
BEST = instances.best("deployment/tiny-g3-m2-s2")


def on_groups(times, counts=(1, 1), gradient_bytes=0):
    """Operators that read nothing, with their seconds on a device of each group."""
    kinds = [f"kind{k}" for k in range(len(counts))]
    operators = [
        {
            "name": str(place), "group": place, "gradient_bytes": gradient_bytes,
            "times_s": {kind: [each] for kind, each in zip(kinds, own, strict=True)},
        }
        for place, own in enumerate(times)
    ]  # fmt: skip
    groups = [
        {"type": kind, "count": count, "memory_bytes": 9, "bandwidth_bytes_per_s": 1}
        for kind, count in zip(kinds, counts, strict=True)
    ]
    data = TINY.model_dump(mode="json") | {
        "operators": operators, "tensors": [], "device_groups": groups, "shares": [1.0],
        "bandwidth_bytes_per_s": [[1] * len(counts)] * len(counts),
    }  # fmt: skip
    return DeploymentInstance.from_data(data)


@pytest.mark.parametrize(
    ("times", "counts", "least"),
    [
        ([[0.2], [0.4], [0.1]], (2,), 0.35),  # parts of the batch may be on either device
        ([[0.2], [0.2], [0.2]], (2,), 0.3),
        ([[0.1, 0.2], [0.1, 0.2]], (1, 1), 0.4 / 3),  # a device and half of one for 0.2
        ([[0.1, 1], [1, 0.1]], (1, 1), 0.1),
    ],
)
def test_work_is_shared_by_all_devices(times, counts, least):
    assert least * 0.995 < plan_bound(on_groups(times, counts)) <= least * (1 + 1e-9)


def test_no_bound_is_above_a_step_of_less_than_a_second():
    found = evaluate_plan(TINY, BEST)
    assert isinstance(found.objective, float)
    assert plan_bound(TINY) <= found.objective < 0.1
    for name in ("compute_s", "transfer_s", "collective_s"):
        assert found.details[name] <= found.objective


def test_a_gradient_is_reduced_or_all_is_computed_somewhere():
    """A second on the only kind of device; two of them take half each, and 6 bytes then go over a link of 1."""
    alone = plan_bound(on_groups([[1.0]], (2,)))
    assert alone <= 1
    assert plan_bound(on_groups([[1.0]], (2,), gradient_bytes=6)) == pytest.approx(1.0)


def test_memory_suffices_up_to_the_tolerance():
    need = max(evaluate_plan(TINY, BEST).details["memory_use"] * TINY.device_groups[0].memory_bytes for _ in range(1))
    for part, fits in ((1.0, True), (1 + FEASIBILITY_TOL / 2, True), (1 + 2 * FEASIBILITY_TOL, False)):
        groups = tuple(group.model_copy(update={"memory_bytes": need / part}) for group in TINY.device_groups)
        assert evaluate_plan(TINY.model_copy(update={"device_groups": groups}), BEST).feasible is fits


TOY = {
    "name": "toy",
    "costs": [[15], [55, 65], [25, 45, 35], [85, 75], [95]],
    "usages": [[10], [25, 25], [15, 20, 15], [10, 10], [15]],
    "intervals": [[30, 70], [40, 70], [50, 120], [110, 140], [110, 150]],
    "edges": [[0, 1], [0, 2], [1, 3], [2, 4], [3, 4]],
    "tables": [[30, 40], [50, 10, 40], [90, 10, 20, 80], [60, 20, 30], [70, 60]],
    "table_of": [0, 1, 2, 3, 4],
}


def test_the_cheapest_of_everything():
    """15 + 55 + 25 + 75 + 95 of nodes, and 30 + 10 + 10 + 20 + 60 of edges."""
    assert 395 - 1e-6 < cheapest_bound(StrategyInstance.from_data(TOY)) < 395
    free = {"costs": [[0 for _ in own] for own in TOY["costs"]], "tables": [[0 for _ in own] for own in TOY["tables"]]}
    assert cheapest_bound(StrategyInstance.from_data(TOY | free)) == 0


def test_strategies_that_are_not_the_same_are_named():
    answer = StrategyAssignment(instance="toy", strategies=(0, 0, 2, 1, 0))
    (found,) = evaluate_strategies(StrategyInstance.from_data(TOY | {"aliases": [[1, 3]]}), answer).violations
    assert (found.where, found.lhs, found.rhs) == ("nodes 1 and 3", 1, 0)
