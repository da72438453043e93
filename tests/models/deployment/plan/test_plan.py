import numpy as np
import pytest
from deployment_plans import random_deployment, random_instance
from refusals import one_line
from volume import for_each

from ddlopt.models.deployment import Deployment, DeploymentInstance, GroupPlan, evaluate
from ddlopt.models.deployment.plan.bounds import plan_bound
from ddlopt.models.deployment.plan.least_times import least_figures, least_units
from ddlopt.models.deployment.plan.shares import UNITS, placed, time_at
from ddlopt.models.deployment.plan.simulator.simulate import simulate
from ddlopt.models.errors import InfeasibleError, InstanceError, SolutionError
from ddlopt.solvers.deployment.plan.simulator.fast import Simulator

TWO = {
    "name": "two",
    "operators": [
        {"name": "first", "group": 0, "times_s": {"a": [1.0]}, "gradient_bytes": 4, "resident_bytes": 60},
        {"name": "second", "group": 1, "times_s": {"a": [2.0]}},
    ],
    "tensors": [{"producer": 0, "consumers": [1], "size_bytes": 10}],
    "device_groups": [{"type": "a", "count": 2, "memory_bytes": 100, "bandwidth_bytes_per_s": 1}] * 2,
    "bandwidth_bytes_per_s": [[1, 1], [1, 1]],
}


def two(**changes):
    return DeploymentInstance.from_data(TWO | changes)


def plan(*groups, duplicated=()):
    return Deployment(
        instance="two", groups=[GroupPlan.model_validate(group) for group in groups], duplicated=duplicated
    )


EVERYWHERE = {"device_groups": (0, 1), "mode": "all_reduce"}
SERVED = {"device_groups": (0, 1), "mode": "parameter_server"}


def on(device, groups=(0,)):
    return {"device_groups": groups, "mode": "model_parallel", "devices": (device,)}


NONSENSE = [
    (plan(EVERYWHERE), "every_group_has_a_plan"),
    (plan(EVERYWHERE, {"device_groups": (0, 2), "mode": "all_reduce"}), "device_group_exists"),
    (plan(EVERYWHERE, {"device_groups": (-1,), "mode": "all_reduce"}), "device_group_exists"),
    (plan(EVERYWHERE, on(4)), "device_exists"),
    (plan(EVERYWHERE, on(-1)), "device_exists"),
    (plan(EVERYWHERE, on(2)), "device_is_in_its_device_groups"),
    (plan(EVERYWHERE, on(0) | {"devices": (0, 1)}), "every_operator_has_a_device"),
    (plan(EVERYWHERE, EVERYWHERE, duplicated=(2,)), "operator_exists"),
    (plan(SERVED, EVERYWHERE, duplicated=(0,)), "duplicated_operator_has_replicas_that_all_reduce"),
    (plan(EVERYWHERE, on(0), duplicated=(1,)), "duplicated_operator_has_replicas_that_all_reduce"),
]


@for_each(("solution", "kind"), NONSENSE)
def test_plans_that_name_what_is_not_there_have_no_time(solution, kind):
    evaluation = evaluate(two(), solution)
    assert evaluation.objective is None
    assert {violation.kind for violation in evaluation.violations} == {kind}
    with pytest.raises(SolutionError, match=f"does not fit instance 'two': {kind}"):
        simulate(two(), solution)


def test_too_little_memory_names_the_device():
    tight = two(device_groups=[{"type": "a", "count": 2, "memory_bytes": 66, "bandwidth_bytes_per_s": 1}] * 2)
    evaluation = evaluate(tight, plan(EVERYWHERE, on(2, (1,))))
    (first, *others) = evaluation.violations
    assert (first.kind, first.where, first.lhs, first.rhs) == ("memory", "device 0 (a)", 60 + 2.5 + 4, 66)
    assert len(others) == 3
    assert evaluate(tight, plan(on(0), on(0))).feasible is False  # 60 + 10 + 4
    assert evaluate(two(), plan(EVERYWHERE, on(2, (1,)))).feasible


def test_details_of_a_step():
    details = evaluate(two(latency_s=1), plan(EVERYWHERE, on(2, (1,))), exact=True).details
    assert details["compute_s"] == 2.25
    assert details["transfer_s"] == 2 * (2.5 + 1)
    assert details["tasks"] == 4 + 1 + 1 + 3
    # Weights, the whole tensor from four devices, and a gradient whose reduction takes long.
    assert details["memory_use"] == pytest.approx(0.74)


@for_each(
    ("changes", "line"),
    [
        ({"tensors": [*TWO["tensors"], {"producer": 1, "consumers": [0], "size_bytes": 1}]}, "form a cycle"),
        ({"bandwidth_bytes_per_s": [[1, 0], [1, 1]]}, "has no bandwidth to device group 1"),
        ({"bandwidth_bytes_per_s": [[1]]}, "1 x 1, but there are 2 device groups"),
        ({"shares": [1, 0.5]}, "has 1 times, but there are 2 shares"),
        ({"shares": [0.5]}, "the first share is the whole"),
        (
            {"operators": [TWO["operators"][0] | {"resident_bytes": 150}, TWO["operators"][1]]},
            "'first' of group 0 keeps 150 bytes, but no device has more than 100",
        ),
        ({"operators": [TWO["operators"][0], TWO["operators"][1] | {"group": 2}]}, "no operator belongs to group 1"),
        (
            {"operators": [TWO["operators"][0] | {"times_s": {"b": [1]}}, TWO["operators"][1]]},
            "no times for device type 'a'",
        ),
    ],
)
def test_bad_instances_are_refused_in_one_line(changes, line):
    with one_line(InstanceError, match=line):
        two(**changes)


@for_each(
    "group",
    [
        {"device_groups": (), "mode": "all_reduce"},
        {"device_groups": (1, 0), "mode": "all_reduce"},
        {"device_groups": (0,), "mode": "model_parallel"},
        {"device_groups": (0,), "mode": "all_reduce", "devices": (0,)},
    ],
)
def test_bad_group_plans_are_refused(group):
    with pytest.raises(SolutionError):
        Deployment.from_data({"instance": "two", "groups": [group]})


def test_the_bound_holds_for_all_plans_and_is_met_where_it_can_be():
    reached = []
    for seed in range(60):
        rng = np.random.default_rng(seed)
        instance = random_instance(
            rng,
            operators=int(rng.integers(3, 8)),
            groups=2,
            device_groups=int(rng.integers(1, 4)),
            whole_numbers=bool(seed % 2),
        )
        bound, simulator = plan_bound(instance), Simulator(instance)
        times = [simulator.run(*simulator.choice(random_deployment(rng, instance))).time_s for _ in range(40)]
        assert min(times) >= bound * (1 - 1e-9)
        reached.append(bound / min(times))
    assert max(reached) > 0.99
    assert np.median(reached) > 0.5


def test_least_figures_hold_for_every_replica():
    rng = np.random.default_rng(1)
    for _ in range(20):
        instance = random_instance(rng, operators=5, groups=2, device_groups=3)
        units, (least, per_batch) = least_units(instance), least_figures(instance)
        for place, replicas in enumerate(placed(instance, random_deployment(rng, instance))):
            for replica in replicas:
                j = int(instance.device_group_of[replica.device])
                times = instance.operators[place].times_s[instance.device_groups[j].type]
                time = time_at(instance.shares, times, replica.units)
                assert replica.units >= units[j]
                assert time >= least[place, j] * (1 - 1e-12)
                assert time * UNITS / replica.units >= per_batch[place, j] * (1 - 1e-12)


def test_a_model_that_fits_nowhere_is_infeasible():
    operators = [TWO["operators"][0] | {"name": str(k), "group": k, "resident_bytes": 90} for k in range(5)]
    with pytest.raises(InfeasibleError, match="keep 450 bytes, but all devices have 400"):
        plan_bound(two(operators=operators, tensors=[]))
