"""The bound against all plans of small instances, duplicated operators and any devices included."""

import itertools

import numpy as np
import pyomo.environ as pyo
import pytest
from deployment_plans import random_deployment, random_instance
from volume import for_each, seeds

from ddlopt.frontier.deployment.plan.formulations.disjunctive_makespan import DisjunctiveMakespan
from ddlopt.models.deployment import Deployment, DeploymentInstance, GroupPlan
from ddlopt.models.deployment.plan.bounds import plan_bound
from ddlopt.models.deployment.plan.figures import PlanFigures
from ddlopt.models.deployment.plan.formulations.makespan_bound import MakespanBound
from ddlopt.models.deployment.plan.shares import placed
from ddlopt.solvers.backends.highs import Highs
from ddlopt.solvers.contracts import Limits, Status
from ddlopt.solvers.deployment.plan.simulator.fast import Simulator
from ddlopt.solvers.exact import build_model, lp_relaxation


def bound_of(instance, kind=MakespanBound, **options):
    formulation = kind(**options)
    model = build_model("deployment", formulation, instance)
    outcome = Highs().solve(model, Limits(60))
    assert outcome.status is Status.OPTIMAL
    return formulation.objective_value(instance, outcome.bound), formulation.read(model.deployment, instance)


def least_time(rng, instance, draws=150):
    """The best of all rows of actions, with all, some and no operators duplicated, and of random plans."""
    simulator = Simulator(instance)
    rows = np.array(list(itertools.product(range(len(simulator.actions)), repeat=instance.groups)))
    times = [simulator.run_all(rows)[0].min()]
    for chance in (1, 0.5, 0.2):
        duplicated = (rng.random(len(instance.operators)) < chance).astype(np.int64)
        times.append(simulator.run_all(rows, duplicated)[0].min())
    times += [simulator.run(*simulator.choice(random_deployment(rng, instance))).time_s for _ in range(draws)]
    return min(times)


@for_each("seed", seeds(1, 6))
def test_no_plan_is_quicker(seed):
    rng = np.random.default_rng(seed)
    instance = random_instance(
        rng,
        operators=int(rng.integers(4, 8)),
        groups=2 + seed % 2,
        device_groups=1 + seed % 2,
        whole_numbers=bool(seed % 2),
    )
    bound, plan = bound_of(instance)
    without, _ = bound_of(instance, pairs=False)
    simulator = Simulator(instance)
    least = least_time(rng, instance)
    assert plan_bound(instance) * (1 - 1e-6) <= without <= bound * (1 + 1e-6)
    assert bound <= least * (1 + 1e-6)
    assert lp_relaxation(MakespanBound(), instance).objective <= bound * (1 + 1e-6)
    assert simulator.run(*simulator.choice(plan)).time_s >= bound * (1 - 1e-6)


def fix(block, instance, deployment):
    """Fix the model to a deployment, whatever it duplicates and whichever devices it names."""
    MakespanBound().start(block, instance, deployment)
    for index in block.decided:
        block.decided[index].fix(round(pyo.value(block.decided[index])))
    figures = PlanFigures(instance)
    at, where = instance.device_group_of, placed(instance, deployment)
    for o, lay in block.duplicated:
        a = next(a for a, each in enumerate(figures.decisions) if each.layout == lay and each.mode == "all_reduce")
        chosen = pyo.value(block.decided[instance.operators[o].group, a])
        block.duplicated[o, lay].fix(int(bool(chosen) and o in deployment.duplicated))
    for o, lay, j in block.runs:
        a = next(a for a, each in enumerate(figures.decisions) if each.layout == lay)
        chosen = pyo.value(block.decided[instance.operators[o].group, a])
        block.runs[o, lay, j].fix(int(bool(chosen) and at[where[o][0].device] == j))


def every_plan():
    """An order on every device, of slow plans too."""
    return DisjunctiveMakespan(every_plan=True)


def holds(kind, rng, seed, plans, *options):
    """Fix the model to random plans: it must not ask for more than they take."""
    instance = random_instance(
        rng, operators=5, groups=2, device_groups=2, counts=[2, 1 + seed % 2], whole_numbers=bool(seed % 2)
    )
    simulator, model = Simulator(instance), build_model("deployment", kind(), instance)
    for _ in range(plans):
        deployment = random_deployment(rng, instance, *options)
        fix(model.deployment, instance, deployment)
        outcome = Highs().solve(model, Limits(60))
        assert outcome.status is Status.OPTIMAL
        time = simulator.run(*simulator.choice(deployment)).time_s
        assert kind().objective_value(instance, outcome.bound) <= time * (1 + 1e-6)


@pytest.mark.parametrize("seed", seeds(2, 8))
@pytest.mark.parametrize(("kind", "plans"), [(MakespanBound, 12), (every_plan, 3)])
def test_every_row_holds_for_every_plan(kind, plans, seed):
    holds(kind, np.random.default_rng(100 + seed), seed, plans)


@pytest.mark.parametrize("seed", [10, 16, 22, 26])
def test_every_row_holds_where_many_operators_are_duplicated(seed):
    """In these cases rows would ask for too much that forget what a duplicated operator need not send or wait for."""
    holds(MakespanBound, np.random.default_rng(seed), seed, 14, 0.6, ("all_reduce",))


def chain(size_bytes=0.0, gradient_bytes=0.0, reduce_s=1.0, counts=(2, 1), memory_bytes=1e3, resident_bytes=0.0):
    """Two operators of 4 s, each a group, on devices that are alike."""
    return DeploymentInstance.from_data(
        {
            "name": "chain",
            "operators": [
                {
                    "name": name,
                    "group": group,
                    "times_s": {"a": [4.0]},
                    "gradient_bytes": gradient_bytes,
                    "resident_bytes": resident_bytes,
                }
                for group, name in enumerate(("first", "second"))
            ],
            "tensors": [{"producer": 0, "consumers": [1], "size_bytes": size_bytes}],
            "device_groups": [
                {"type": "a", "count": count, "memory_bytes": memory_bytes, "bandwidth_bytes_per_s": 1e3}
                for count in counts
            ],
            "bandwidth_bytes_per_s": [[1.0] * len(counts)] * len(counts),
            "all_reduce": {"s_per_byte": [reduce_s], "fixed_s": [0.0], "at_bytes_per_s": 1.0},
        }
    )


def test_a_chain_in_closed_form():
    assert bound_of(chain())[0] == pytest.approx(8 / 3, rel=1e-6)
    # Links between the device groups are too slow. The first gradient is reduced while the second operator runs.
    assert bound_of(chain(gradient_bytes=100.0))[0] == pytest.approx(4 + 0.1, rel=1e-6)
    bound, plan = bound_of(chain(gradient_bytes=100.0, reduce_s=100.0))
    assert plan.groups[1].mode == "parameter_server"
    assert plan.groups[1].device_groups == (0,)
    assert bound == pytest.approx(4 + 0.2, rel=1e-3)


def test_what_moves_between_groups_counts():
    instance = chain(size_bytes=30.0, counts=(1, 1), memory_bytes=50.0, resident_bytes=20.0)
    # No device has room for the weights of both, and what one reads and makes.
    assert bound_of(instance)[0] == pytest.approx(4 + 30 + 4, rel=1e-6)
    assert bound_of(instance, pairs=False)[0] == pytest.approx(8, rel=1e-6)


def test_what_does_not_fit_is_infeasible():
    model = build_model("deployment", MakespanBound(), chain(counts=(1, 1), memory_bytes=10.0, resident_bytes=10.0))
    # Both of the first group's device: the second operator has no room left.
    model.deployment.decided[0, 0].fix(1)
    model.deployment.decided[1, 0].fix(1)
    assert Highs().solve(model, Limits(60)).status is Status.INFEASIBLE


def test_a_start_is_the_plan_that_is_read():
    rng = np.random.default_rng(3)
    instance = random_instance(rng, operators=5, groups=3, device_groups=2, counts=[2, 1])
    simulator = Simulator(instance)
    row = rng.integers(len(simulator.actions), size=3)
    plan = simulator.deployment(row)
    model = build_model("deployment", MakespanBound(), instance)
    MakespanBound().start(model.deployment, instance, plan)
    for index in model.deployment.decided:
        model.deployment.decided[index].fix(round(pyo.value(model.deployment.decided[index])))
    outcome = Highs().solve(model, Limits(60))
    read = MakespanBound().read(model.deployment, instance)
    for mine, theirs in zip(read.groups, plan.groups, strict=True):
        assert (mine.device_groups, mine.mode) == (theirs.device_groups, theirs.mode)
    time = simulator.run(row).time_s
    assert MakespanBound().objective_value(instance, outcome.bound) <= time * (1 + 1e-6)


def test_what_is_read_is_a_deployment():
    assert isinstance(bound_of(chain())[1], Deployment)
    assert isinstance(bound_of(chain())[1].groups[0], GroupPlan)


@pytest.mark.slow
def test_an_order_on_every_device_tightens_the_bound():
    ratios = []
    for seed in (0, 2, 4):
        rng = np.random.default_rng(seed)
        count = int(rng.integers(4, 6))
        instance = random_instance(
            rng, operators=count, groups=2, device_groups=2, counts=[2, 1], whole_numbers=bool(seed % 2)
        )
        loose, least = bound_of(instance)[0], least_time(rng, instance)
        tight, _ = bound_of(instance, DisjunctiveMakespan)
        assert loose * (1 - 1e-5) <= tight <= least * (1 + 1e-6)
        ratios.append((loose / least, tight / least))
    assert max(tight - loose for loose, tight in ratios) > 0.2
    assert any(tight > 0.999 for _, tight in ratios)


def test_only_small_graphs_are_ordered():
    rng = np.random.default_rng(0)
    large = random_instance(rng, operators=13, groups=2, device_groups=1)
    assert "at most 12 operators, and there are 13" in DisjunctiveMakespan().refuses(large)
    wide = random_instance(rng, operators=3, groups=2, device_groups=2, counts=[5, 4])
    assert "at most 8 devices, and there are 9" in DisjunctiveMakespan().refuses(wide)
    assert DisjunctiveMakespan(pairs=False).refuses(chain()) == "it needs pairs"
