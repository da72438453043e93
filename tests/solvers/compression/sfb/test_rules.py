"""The published rules: their closed forms, and how they stand to the optimum."""

import numpy as np
import pytest
from sfb_cases import changed, dense, drawn
from volume import for_each

from ddlopt.models.compression import SfbSelection, Tensor, evaluate
from ddlopt.models.compression.sfb.cut_network import minimum_cut
from ddlopt.models.errors import OptionError
from ddlopt.solvers.compression.sfb.rules import FactorRule, Poseidon, Tag
from ddlopt.solvers.contracts import Limits

RULES = (Tag(), Poseidon(), FactorRule())


def duplicated(rule, instance):
    return rule.solve(instance, Limits()).solution.duplicated


@for_each(
    ("workers", "cost_model", "accepted"),
    [
        # fc6 of VGG-19, 32 samples a device: 2 m n = 205.5 M; D b (m + n) = 1.87 M and 14.9 M; D^3 b (m + n) = 3.8 G.
        (2, "per_link", True), (2, "total_bytes", True), (2, "tag_code", True),
        (16, "per_link", True), (16, "total_bytes", True), (16, "tag_code", False),
    ],
)  # fmt: skip
def test_fc6_of_vgg19(workers, cost_model, accepted):
    instance = dense(cost_model, batch=32, workers=workers, time_s=0.0)
    chosen = (2,) if accepted else ()
    assert duplicated(FactorRule(), instance) == chosen
    assert tuple(np.flatnonzero(minimum_cut(instance).duplicated)) == chosen
    assert duplicated(Tag(), instance) == ((2,) if workers == 2 else ())
    assert duplicated(Poseidon(), instance) == (2,)


@pytest.mark.parametrize("workers", [2, 4, 7])
def test_closed_forms_where_they_turn(workers):
    m, n = 300, 200
    for power, cost_model in ((1, "per_link"), (1, "total_bytes"), (3, "tag_code")):
        batch = 2 * m * n / (workers**power * (m + n))
        for side in (0.999, 1.001):
            instance = dense(cost_model, batch=batch * side, workers=workers, time_s=0.0, m=m, n=n)
            assert duplicated(FactorRule(), instance) == ((2,) if side < 1 else ())
    for servers in (None, 1, 3, 40):
        shards = servers or workers
        batch = m * n * (workers + shards - 2) / (shards * (workers - 1) * (m + n))
        for side in (0.999, 1.001):
            instance = dense(batch=batch * side, workers=workers, time_s=0.0, m=m, n=n)
            assert duplicated(Poseidon(servers), instance) == ((2,) if side < 1 else ())


def test_poseidon_knows_dense_layers_only_and_no_computation():
    slow = dense(time_s=1e3)
    assert duplicated(Poseidon(), slow) == (2,)
    assert duplicated(FactorRule(), slow) == ()
    for tensors in (slow.tensors[:1], (*slow.tensors, Tensor(producer=0, consumers=(2,), size_bytes=0.0))):
        assert duplicated(Poseidon(), changed(slow, tensors=tensors)) == ()
    for fields in ({"replicas": 1}, {"can_duplicate": False}):
        operators = tuple(each.model_copy(update=fields) for each in slow.operators)
        assert duplicated(Poseidon(), changed(slow, operators=operators)) == ()
    with pytest.raises(OptionError, match="servers is 0"):
        Poseidon(servers=0)


@for_each("seed", range(8))
def test_tag_is_optimal_for_its_own_costs(seed):
    instance = drawn(seed, operators=30)
    large = [each.model_copy(update={"gradient_bytes": 10 * each.gradient_bytes}) for each in instance.operators]
    instance = changed(instance, operators=tuple(large))
    own = changed(instance, cost_model="tag_code", broadcast="per_edge", duplication_penalty_s=1e-6)
    chosen = duplicated(Tag(), instance)
    cost = evaluate(own, SfbSelection(instance=own.name, duplicated=chosen)).objective
    assert cost == pytest.approx(minimum_cut(own).bound_s, rel=1e-12)
    assert len(chosen) > 1


def test_tag_duplicates_nothing_for_less_than_a_microsecond():
    for saved_s, chosen in ((0.9e-6, ()), (1.1e-6, (2,))):
        # Two workers all-reduce as many elements as the gradient has, at 1.25e9 "bytes" a second.
        instance = dense(workers=2, batch=0, time_s=0.0, m=1, n=saved_s * 1.25e9)
        assert duplicated(Tag(), instance) == chosen
        assert duplicated(FactorRule(), instance) == (2,)


@for_each("rule", RULES)
@for_each("seed", range(4))
def test_rules_are_no_better_than_the_optimum_and_keep_budgets(rule, seed):
    instance = drawn(seed, operators=30, cost_model=("per_link", "total_bytes")[seed % 2])
    free = rule.solve(instance, Limits())
    assert free.objective >= minimum_cut(instance).bound_s * (1 - 1e-12)
    operators = instance.operators
    memory = sum(operators[node].memory_bytes for node in free.solution.duplicated)
    computed = float(instance.extra_s[list(free.solution.duplicated)].sum())
    both = {"memory_budget_bytes": memory, "compute_budget_s": computed / 2}
    for fields in ({"memory_budget_bytes": memory / 2}, both):
        # finish refuses what breaks a budget.
        result = rule.solve(changed(instance, **fields), Limits())
        assert set(result.solution.duplicated) <= set(free.solution.duplicated)
        assert not free.solution.duplicated or result.solution != free.solution
    enough = {"memory_budget_bytes": memory * 1.01, "compute_budget_s": computed * 1.01}
    assert duplicated(rule, changed(instance, **enough)) == free.solution.duplicated


def test_the_closed_form_misses_what_gradients_share():
    # Two dense layers that read the same activations: together they pay for their broadcast, alone they do not.
    one = dense(batch=1800, time_s=0.0)
    operators = (*one.operators, one.operators[1], one.operators[2])
    large, small = one.tensors
    tensors = (
        large.model_copy(update={"consumers": (2, 4)}),
        small,
        small.model_copy(update={"producer": 3, "consumers": (4,)}),
    )
    instance = changed(one, operators=operators, tensors=tensors)
    alone, both = instance.broadcast_s[:2].sum(), instance.broadcast_s.sum()
    assert instance.sync_s[2] < alone
    assert both < 2 * instance.sync_s[2]
    assert duplicated(FactorRule(), instance) == ()
    assert tuple(np.flatnonzero(minimum_cut(instance).duplicated)) == (2, 4)
