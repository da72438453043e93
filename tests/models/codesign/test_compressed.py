"""Strategies times compressors with an error budget: the check, bounds, symmetry, and that an empty menu is none."""

import itertools
from fractions import Fraction
from math import inf

import numpy as np
import pytest
from brute_force import brute_force
from refusals import one_line
from volume import for_each, slow, spread

from ddlopt.certificates.codesign.choices import Choices
from ddlopt.certificates.codesign.exact import ExactFigures
from ddlopt.frontier.codesign.bounds import prices_bound
from ddlopt.frontier.codesign.prices.prices import PricedSum, best_prices
from ddlopt.instances.checkers import codesign as checker
from ddlopt.instances.generators.codesign import generate
from ddlopt.instances.generators.codesign.random import random_job
from ddlopt.models.codesign import CodesignInstance, CodesignPlan, evaluate, job_of
from ddlopt.models.codesign.demand import demand_of
from ddlopt.models.codesign.formulations.strategy_bound import StrategyBound
from ddlopt.models.codesign.symmetry.twins import twin_layers
from ddlopt.models.codesign.tables import tables_of
from ddlopt.models.errors import InstanceError, OptionError
from ddlopt.models.topology import TopologyDesign
from ddlopt.solvers.backends.highs import Highs
from ddlopt.solvers.contracts import Limits
from ddlopt.solvers.exact import build_model

OPTIONS = (
    {"traffic": 0.5, "twins": 1},
    {"overlap": "full", "optics": "duplex", "degree": 3},
    {"memory_slack": 1.05, "twins": 1},
    {"optics": "duplex", "degree": 1, "error_slack": 0.0},
)


def compressed(seed, **more):
    options = {"layers": 2, "strategies": 2, "reduction": 0.8, "compressors": 2, "error_slack": 0.35}
    return random_job(np.random.default_rng([3, seed]), **options | OPTIONS[seed % len(OPTIONS)] | more)


def lost(instance, choices):
    """From the data alone."""
    return sum(Fraction(layer.strategies[a].error) for layer, a in zip(instance.layers, choices, strict=True))


def all_choices(instance):
    return itertools.product(*(range(len(layer.strategies)) for layer in instance.layers))


def kept(instance):
    """Choices that keep the budget and fit into memory."""
    tables = tables_of(instance)
    limit = instance.device.memory_bytes or inf
    within = [each for each in all_choices(instance) if tables.memory_of(each).max() <= limit]
    return [each for each in within if instance.error_budget is None or lost(instance, each) <= instance.error_budget]


def own_bound(instance, choices):
    """What the rows say of one choice."""
    figures = np.concatenate(tables_of(instance).bytes_of(choices))
    if job_of(instance, choices) is not None and demand_of(tables_of(instance)).unreachable[figures > 0].any():
        return inf
    return instance.iteration_time_s(
        tables_of(instance).compute_of(choices), demand_of(tables_of(instance)).least_bytes(figures)
    )


def solved(instance, collapse=True):
    formulation = StrategyBound(collapse=collapse)
    model = build_model("codesign", formulation, instance)
    outcome = Highs().solve(model, Limits(gap=0))
    return formulation.objective_value(instance, outcome.objective), formulation.read(model.codesign, instance)


@for_each("seed", spread(range(40), 6))
def test_the_program_has_the_best_choice_that_keeps_the_budget(seed):
    instance = compressed(seed)
    within = kept(instance)
    assert len(within) < np.prod([float(size) for size in tables_of(instance).sizes])
    best = min((own_bound(instance, each) for each in within), default=inf)
    if best == inf:
        return
    for collapse in (True, False):
        value, choices = solved(instance, collapse)
        assert choices in within
        assert value == pytest.approx(best, rel=1e-6)


@for_each("seed", range(60))
def test_no_choice_beats_the_priced_bound_and_no_kept_one_is_excluded(seed):
    instance = compressed(seed)
    times = {each: own_bound(instance, each) for each in kept(instance)}
    if not times:
        return
    best = min(times.values())
    assert best_prices(tables_of(instance)).value_s <= best * (1 + 1e-9)
    if 0 < best < inf:
        claim = Fraction(best) * Fraction(1001, 1000)
        left = set(Choices(ExactFigures(instance), claim).left(lambda: False))
        assert {each for each, time in times.items() if time == best} <= left
        assert all(lost(instance, each) <= Fraction(instance.error_budget) * (1 + Fraction(1, 10**8)) for each in left)


@for_each("seed", range(20))
def test_any_prices_bound_every_choice(seed):
    instance, rng = compressed(seed), np.random.default_rng(seed)
    priced = PricedSum(tables_of(instance))
    prices = priced.first_prices()
    for _ in range(3):
        some = prices.__class__(prices.busy, prices.path, prices.profile, prices.rows, prices.memory, rng.exponential())
        value, _ = priced.minimum(some)
        assert value <= min((own_bound(instance, each) for each in kept(instance)), default=inf) * (1 + 1e-9)


def test_a_budget_makes_the_bound_larger():
    tight = compressed(0, error_slack=0.1)
    free = tight.changed(error_budget=None)
    none = compressed(0, error_slack=0.0)
    assert prices_bound(free) * 1.001 < prices_bound(tight) < prices_bound(none) * 1.000001
    plain = none.changed(
        error_budget=None,
        layers=[
            layer.model_dump() | {"strategies": [each for each in layer.strategies if not each.error]}
            for layer in none.layers
        ],
    )
    assert prices_bound(none) == pytest.approx(prices_bound(plain), rel=1e-4)


@for_each("seed", [4, *map(slow, range(4))])
def test_the_bound_is_one_on_the_best_plan(seed):
    """Over all links, rings and routes of every choice that keeps the budget."""
    instance = compressed(seed, servers=3, degree=1)
    best = inf
    for choices in kept(instance):
        job = job_of(instance, choices)
        load = 0.0 if job is None else brute_force(job)
        best = min(best, instance.iteration_time_s(tables_of(instance).compute_of(choices), load))
    if best == inf:
        return
    assert prices_bound(instance) <= best * (1 + 1e-9)
    assert solved(instance)[0] <= best * (1 + 1e-6)


def one_layer(budget, **more):
    """Two servers and a layer that may send 8 bytes, 4 with an error of 1, or 2 with an error of 3, in 1 s each."""
    ways = [("plain", 8.0, 0.0, 0.0), ("half", 4.0, 1.0, 0.5), ("quarter", 2.0, 3.0, 0.25)]
    strategies = [
        {"name": name, "writes": 0, "flops": 1.0, "error": error, "encoding_s": coding_s}
        | {"reductions": [{"groups": 0, "bytes": amount}]}
        for name, amount, error, coding_s in ways
    ]
    return CodesignInstance.from_data(
        {
            "name": "one-layer",
            "servers": 2,
            "degree": 1,
            "link_bandwidth_bytes_per_s": 1.0,
            "device": {"flops_per_s": 1.0, "convolution_flops_per_s": 1.0, "memory_bytes_per_s": 1.0},
            "layouts": [{"batch_parts": 2, "servers": [0, 1]}],
            "group_sets": [[[0, 1]]],
            "layers": [{"name": "only", "strategies": strategies}],
            "error_budget": budget,
        }
        | more
    )


def plan(strategy):
    """A link each way; a ring of two servers sends the bytes once over each."""
    ring = {"group": 0, "members": [0, 1], "share": 1.0, "paths": [[0, 1], [1, 0]]}
    design = TopologyDesign.from_data({"instance": "one-layer", "links": [[0, 1, 1], [1, 0, 1]], "rings": [ring]})
    return CodesignPlan(instance="one-layer", strategies=(strategy,), design=design)


@pytest.mark.parametrize(
    ("budget", "strategy", "time", "broken"),
    [
        (None, "quarter", 3.25, ()),
        (3.0, "quarter", 3.25, ()),
        (2.999, "quarter", 3.25, ("error_budget_is_kept",)),
        (1.0, "half", 5.5, ()),
        (0.0, "half", 5.5, ("error_budget_is_kept",)),
        (0.0, "plain", 9.0, ()),
    ],
)
def test_the_check_counts_encoding_and_what_is_lost(budget, strategy, time, broken):
    instance = one_layer(budget)
    for exact in (False, True):
        told = evaluate(instance, plan(strategy), exact)
        assert told.objective == time
        assert tuple(each.kind for each in told.violations) == broken
    objective, rules = checker.check(instance.model_dump(mode="json"), plan(strategy).model_dump(mode="json"))
    assert (objective, tuple(rule for rule, _ in rules)) == (time, broken)
    assert told.details.get("error") == (None if budget is None else lost(instance, instance_choice(strategy)))


def instance_choice(strategy):
    return (["plain", "half", "quarter"].index(strategy),)


@pytest.mark.parametrize(("most", "broken"), [(0.3, ()), (0.2999, ("memory_suffices", "memory_suffices"))])
def test_memory_may_be_full_up_to_rounding(most, broken):
    """In floats 0.1 and 0.2 are more than 0.3."""
    data = one_layer(None).model_dump(mode="json")
    ways = [data["layers"][0]["strategies"][0] | {"memory_bytes": taken} for taken in (0.1, 0.2)]
    data["layers"] = [{"name": f"layer {place}", "strategies": [way]} for place, way in enumerate(ways)]
    data["device"]["memory_bytes"] = most
    instance, answer = CodesignInstance.from_data(data), plan("plain")
    answer = answer.model_copy(update={"strategies": ("plain", "plain")})
    assert tuple(each.kind for each in evaluate(instance, answer).violations) == broken
    assert tuple(rule for rule, _ in checker.check(data, answer.model_dump(mode="json"))[1]) == broken
    assert tables_of(instance).fits((0, 0)) == (not broken)
    if not broken:
        assert Highs().solve(build_model("codesign", StrategyBound(), instance), Limits(), 0).bound is not None
        assert list(Choices(ExactFigures(instance), Fraction(100)).left(lambda: False)) == [(0, 0)]


def test_encoding_counts_beside_what_was_measured():
    data = one_layer(None).model_dump()
    data["layers"][0]["strategies"][1]["measured_s"] = 2.0
    instance = CodesignInstance.from_data(data)
    assert evaluate(instance, plan("half"), exact=True).objective == 2 + Fraction(1, 2) + 4
    assert tables_of(instance).compute_s[0].tolist() == [1.0, 2.5, 1.25]
    assert [ExactFigures(instance).time(0, a) for a in range(3)] == [1, Fraction(5, 2), Fraction(5, 4)]


def test_a_budget_below_what_any_menu_allows_is_refused():
    layer = one_layer(None).model_dump()["layers"][0]
    lossy = [layer | {"strategies": layer["strategies"][1:]}]
    with one_line(InstanceError, "error_budget is 0.5, but no choice of strategies loses less than 1.0"):
        one_layer(0.5, layers=lossy)
    assert one_layer(1.0, layers=lossy).error_budget == 1
    with one_line(InstanceError, "error_budget"):
        one_layer(-1.0)
    with one_line(OptionError, "error_budget is -0.1; it must be at least 0"):
        generate("job", job="candle", error_budget=-0.1)
    with one_line(OptionError, "compressors has 'qsgd:4'; rings of layers take: fp16, random_k:RATIO"):
        generate("job", job="candle", compressors=("qsgd:4",))


@pytest.mark.parametrize("kind", [{"kind": "random", "strategies": 2}, {"kind": "job", "job": "dlrm", "servers": 8}])
def test_an_empty_menu_is_none(kind):
    empty = {"compressors": 0} if kind["kind"] == "random" else {"compressors": ()}
    plain, same = generate(**kind), generate(**kind, **empty).changed(source=generate(**kind).source)
    assert same.model_dump_json() == plain.model_dump_json()
    assert same.digest == plain.digest
    for word in ("error", "encoding_s"):
        assert f'"{word}' not in plain.model_dump_json()


def test_layers_with_other_errors_are_no_twins_and_no_images():
    instance = compressed(0, twins=0, layers=1)
    layer = instance.layers[0].model_dump()
    twin = layer | {"name": "twin"}
    both = instance.changed(layers=[layer, twin])
    assert twin_layers(tables_of(both)) == ((0, 1),)
    other = twin | {"strategies": [each | {"error": 2 * each.get("error", 0.0)} for each in twin["strategies"]]}
    assert twin_layers(tables_of(instance.changed(layers=[layer, other]))) == ((0,), (1,))


def test_a_job_offers_each_compressor_for_gradients_alone():
    plain = generate("job", job="bert", servers=4, degree=2)
    menu = generate("job", job="bert", servers=4, degree=2, compressors=("fp16", "random_k:0.25"), error_budget=0.2)
    assert menu.error_budget == 0.2
    total = 0.0
    for one, other in zip(plain.layers, menu.layers, strict=True):
        ways = {each.name: each for each in other.strategies}
        assert [each for each in other.strategies if "+" not in each.name] == list(one.strategies)
        total += max(each.error for each in other.strategies) / 0.75
        for name, way in ways.items():
            base, _, word = name.partition("+")
            if word:
                before = sum(each.bytes for each in ways[base].reductions)
                after = sum(each.bytes for each in way.reductions)
                part = {"fp16": 0.5, "random_k:0.25": 0.25}[word]
                assert part * before <= after * (1 + 1e-9) < before
                assert way.encoding_s > 0 < way.error
                if base == "data":
                    assert after == pytest.approx(part * before)
    # All that may be compressed is everything but the embeddings' tables.
    assert 0.5 < total <= 1 + 1e-5
