"""The integer program of sufficient factor broadcasting: its optimum, its polyhedron, its ports."""

from functools import cache
from itertools import combinations, product

import numpy as np
import pyomo.environ as pyo
import pytest
from sfb_brute_force import all_best
from volume import for_each, slow

import ddlopt
from ddlopt.instances.generators.compression.sfb_random import random_graph
from ddlopt.models.compression import Operator, SfbInstance, SfbSelection, Tensor
from ddlopt.models.compression.sfb.formulations.sfb_milp import SfbMilp, unit_s
from ddlopt.models.errors import SolverError
from ddlopt.solvers.backends.matrix import linear_model
from ddlopt.solvers.contracts import Limits, Status
from ddlopt.solvers.exact import Exact, build_model, lp_relaxation

METHOD = Exact("milp", "compression", SfbMilp())
FORMS = list(product(("per_link", "total_bytes", "tag_code"), ("per_tensor", "per_edge")))


def graph(seed, operators=7, **options):
    return random_graph(np.random.default_rng(seed), operators, **options)


def operator(name, time_s=0.0, gradient_bytes=0.0, **more):
    """Two replicas at 1 byte/s: half of the time is what duplicating costs, and all of the gradient what it saves."""
    return Operator(
        name=name, time_s=time_s, replicas=2, bandwidth_bytes_per_s=1.0, gradient_bytes=gradient_bytes, **more
    )


@cache
def without_budget(seed, **drawn):
    """The optimum, which all budgets are held against."""
    return METHOD.solve(graph(seed, **drawn), Limits(gap=0)).objective


@for_each(("cost_model", "broadcast"), FORMS)
@for_each("budgets", [{}, {"memory_part": 0.3}, {"compute_part": 0.2}, {"memory_part": 0.4, "compute_part": 0.1}])
@for_each("graphs", [range(1, 3), slow(range(4))])
def test_optimum_is_that_of_enumeration(cost_model, broadcast, budgets, graphs):
    binding = 0
    for seed in graphs:
        drawn = {"shape": ("any", "training")[seed % 2], "mixed_replicas": seed > 1, "network_gigabit_per_s": 1.0}
        drawn |= {"cost_model": cost_model, "broadcast": broadcast}
        instance = graph(seed, **drawn, **budgets)
        result = METHOD.solve(instance, Limits(gap=0))
        best, selections = all_best(instance)
        assert result.status is Status.OPTIMAL
        assert result.objective == pytest.approx(best, rel=1e-9)
        assert set(result.solution.duplicated) in selections
        assert result.bound <= best * (1 + 1e-12)
        binding += best > without_budget(seed, **drawn) * (1 + 1e-9)
    assert bool(binding) == bool(budgets)


def matrix_of(instance):
    """Rows of the model."""
    matrix = linear_model(build_model("compression", SfbMilp(), instance)).matrix.toarray()
    assert np.isin(matrix, (-1, 0, 1)).all()
    return matrix


def determinants(matrix, largest):
    """Of all square parts up to a size."""
    found = set()
    for size in range(1, min(largest, *matrix.shape) + 1):
        for rows in combinations(range(matrix.shape[0]), size):
            columns = np.array(list(combinations(range(matrix.shape[1]), size)))
            parts = matrix[np.array(rows)][:, columns].transpose(1, 0, 2)
            found |= set(np.round(np.linalg.det(parts)).astype(int).tolist())
    return found


def dag(seed, operators):
    """Every operator reads two tensors of those before it."""
    rng = np.random.default_rng(seed)
    consumers = [[set(), set()] for _ in range(operators)]
    for node in range(1, operators):
        for producer in rng.choice(node, min(2, node), replace=False):
            consumers[producer][rng.integers(2)].add(node)
    return [
        Tensor(producer=node, consumers=tuple(sorted(each)), size_bytes=1.0)
        for node, tensors in enumerate(consumers)
        for each in tensors
        if each
    ]


@pytest.mark.parametrize("broadcast", ["per_edge", "per_tensor"])
def test_matrix_is_totally_unimodular(broadcast):
    for seed in range(6):
        instance = SfbInstance(
            name="tiny", operators=[operator(f"{node}") for node in range(4)], tensors=dag(seed, 4), broadcast=broadcast
        )
        assert determinants(matrix_of(instance), 5) == {-1, 0, 1}


def test_determinants_tell_a_budget():
    instance = SfbInstance(
        name="tiny", operators=[operator(f"{node}") for node in range(3)], tensors=dag(0, 3), broadcast="per_edge"
    )
    assert not determinants(np.vstack((matrix_of(instance), [[1, 1, 1, 0, 0, 0]])), 4) <= {-1, 0, 1}


def test_a_budget_makes_a_vertex_fractional():
    # Each saves 10 - 1 s; memory is there for one and a half of them.
    instance = SfbInstance(
        name="two",
        operators=[operator(name, time_s=2.0, gradient_bytes=10.0, memory_bytes=2.0) for name in "ab"],
        memory_budget_bytes=3.0,
    )
    assert lp_relaxation(SfbMilp(), instance).objective == pytest.approx(20 - 1.5 * 9)
    assert METHOD.solve(instance, Limits()).objective == pytest.approx(20 - 9)
    without = SfbInstance.from_data(instance.model_dump() | {"memory_budget_bytes": None})
    assert lp_relaxation(SfbMilp(), without).objective == pytest.approx(20 - 2 * 9)


def test_any_direction_has_an_integral_vertex():
    rng = np.random.default_rng(0)
    for seed, broadcast in product(range(4), ("per_edge", "per_tensor")):
        instance = graph(seed, operators=12, shape="any", broadcast=broadcast)
        model = build_model("compression", SfbMilp(), instance)
        pyo.TransformationFactory("core.relax_integer_vars").apply_to(model)
        variables = [each for each in model.component_data_objects(pyo.Var) if not each.fixed]
        for _ in range(10):
            model.del_component("objective")
            costs = rng.normal(size=len(variables)).tolist()
            model.objective = pyo.Objective(expr=sum(c * v for c, v in zip(costs, variables, strict=True)))
            METHOD.backend.solve(model, Limits())
            values = np.array([variable.value for variable in variables])
            assert np.abs(values - np.round(values)).max() < 1e-7


@pytest.mark.parametrize("limit", ["memory_budget_bytes", "compute_budget_s"])
def test_nothing_fits_into_an_empty_budget(limit):
    instance = graph(1, operators=30)
    costly = {
        node for node, each in enumerate(instance.operators) if each.memory_bytes > 0 and instance.extra_s[node] > 0
    }
    result = METHOD.solve(SfbInstance.from_data(instance.model_dump() | {limit: 0.0}), Limits(gap=0))
    assert not costly & set(result.solution.duplicated)
    assert METHOD.solve(instance, Limits()).solution.duplicated


def test_a_budget_is_kept_to_a_part_of_1e_9():
    # Both together take a part of 1e-8 too much, which a solver's tolerance alone would let pass.
    instance = SfbInstance(
        name="close",
        operators=[operator(name, gradient_bytes=10.0, memory_bytes=1e9) for name in "ab"],
        memory_budget_bytes=2e9 * (1 - 1e-8),
    )
    assert len(METHOD.solve(instance, Limits()).solution.duplicated) == 1


def test_ports():
    instance = SfbInstance(
        name="ports",
        operators=[
            operator("a", time_s=1.0),
            operator("b", time_s=4.0, gradient_bytes=9.0),
            operator("c", gradient_bytes=9.0, can_duplicate=False),
            operator("d", time_s=2.0, gradient_bytes=9.0),
        ],
        tensors=[
            Tensor(producer=0, consumers=(1, 2, 3), size_bytes=8.0),
            Tensor(producer=1, consumers=(2,), size_bytes=8.0),
        ],
        duplication_penalty_s=0.25,
    )
    for broadcast, places in (("per_tensor", [0]), ("per_edge", [(0, 1), (0, 3)])):
        formed = SfbInstance.from_data(instance.model_dump() | {"broadcast": broadcast})
        block = build_model("compression", SfbMilp(), formed).compression
        assert list(block.broadcast) == places
        assert list(block.inputs_are_there) == [(0, 1), (0, 3)]
        assert block.duplicated[2].fixed
        SfbMilp().start(block, formed, SfbSelection(instance="ports", duplicated=(1, 3)))
        for variable in block.broadcast.values():
            variable.set_value(1)
        # b and d half of their time more, c's all-reduce, a's tensor broadcast (4 s each time), two penalties.
        seconds = SfbMilp().objective_value(formed, pyo.value(block.objective))
        assert seconds == pytest.approx(2 + 1 + 9 + 4 * len(places) + 0.5)
        assert SfbMilp().read(block, formed).duplicated == (1, 3)
        block.duplicated[1].set_value(0.5)
        with pytest.raises(SolverError, match=r"operator 1 of 'ports' is duplicated in part: 0.5"):
            SfbMilp().read(block, formed)


def test_a_start_is_kept_where_there_is_no_time():
    instance = graph(3, operators=40, memory_part=0.3)
    start = METHOD.solve(instance, Limits(gap=0)).solution
    again = METHOD.solve(instance, Limits(gap=0), start=start)
    assert again.solution.duplicated == start.duplicated
    assert METHOD.solve(instance, Limits(time_s=1e-6), start=start).solution.duplicated == start.duplicated


@for_each("instance", [
    SfbInstance(name="alone", operators=[operator("a")]),
    SfbInstance(name="no gradients", operators=[operator("a"), operator("b", time_s=1.0)],
                tensors=[Tensor(producer=0, consumers=(1,), size_bytes=1.0)]),
    SfbInstance(name="free", operators=[operator("a", gradient_bytes=4.0)]),
    SfbInstance(name="one device", operators=[Operator(name="a", time_s=1.0, bandwidth_bytes_per_s=1.0,
                                                       gradient_bytes=1.0)]),
])  # fmt: skip
def test_smallest(instance):
    result = METHOD.solve(instance, Limits(gap=0))
    assert result.objective == all_best(instance)[0] == 0
    assert unit_s(instance) > 0


@pytest.mark.slow
def test_broadcasts_that_nobody_needs_are_no_contradiction():
    """HiGHS stops at a gap with broadcasts above what the selection needs; the selection counts, not the claim."""
    free = random_graph(np.random.default_rng(1), operators=3000, samples=4)
    used = ddlopt.solve(free, "min-cut").details["duplicated_memory_bytes"]
    budgeted = SfbInstance.from_data(free.model_dump() | {"memory_budget_bytes": 0.4 * used})
    result = ddlopt.solve(budgeted, "milp", time_limit=60)
    assert result.checked
    assert result.gap < 1e-3
