"""Compressors apart from strategies and links: what is narrowed, what the greedy takes, and never better than all."""

import itertools

import pytest
from codesign_cases import best_of_all
from refusals import one_line
from volume import for_each, seeds

import ddlopt
from ddlopt.instances.generators.codesign.random import random_job
from ddlopt.models.codesign import CodesignInstance, evaluate
from ddlopt.models.codesign.formulations.rows.coupling import plan_of
from ddlopt.models.codesign.tables import tables_of
from ddlopt.models.errors import OptionError
from ddlopt.solvers.codesign.compression_apart import compressed_first, compressed_last, without_compression
from ddlopt.solvers.codesign.fixed_routes import FixedRoutes
from ddlopt.solvers.contracts import Limits
from ddlopt.solvers.heuristic import Clock


def random_compressed(seed, **more):
    import numpy as np

    options = {"servers": 3, "degree": 1, "layers": 3, "strategies": 2, "reduction": 0.8, "compressors": 2}
    return random_job(np.random.default_rng([7, seed]), **options | {"error_slack": 0.5} | more)


def names(instance):
    return [[each.name for each in layer.strategies] for layer in instance.layers]


def made(budget=10.0, layers=((8.0, 1.0, 3.0), (4.0, 2.0, 1.0))):
    """Two servers, one link a way; layers that reduce some bytes, or, compressed, fewer for what they lose."""

    def strategy(name, amount, error):
        return {"name": name, "writes": 0, "error": error, "reductions": [{"groups": 0, "bytes": amount}]}

    return CodesignInstance.from_data(
        {
            "name": "by-hand",
            "servers": 2,
            "degree": 1,
            "link_bandwidth_bytes_per_s": 1.0,
            "device": {"flops_per_s": 1.0, "convolution_flops_per_s": 1.0, "memory_bytes_per_s": 1.0},
            "layouts": [{"batch_parts": 2, "servers": [0, 1]}],
            "group_sets": [[[0, 1]]],
            "layers": [
                {"name": f"l{k}", "strategies": [strategy("plain", big, 0.0), strategy("less", small, lost)]}
                for k, (big, small, lost) in enumerate(layers)
            ],
            "error_budget": budget,
        }
    )


def plain_plan(instance):
    return ddlopt.solve(without_compression(instance), "alternating", time_limit=5).solution.changed(
        instance=instance.name, instance_digest=None
    )


def compressed_names(instance, how):
    return compressed_last(instance, plain_plan(instance), how, 0, Clock(Limits(), None)).strategies


@pytest.mark.parametrize(
    ("budget", "greedy", "exact"),
    [
        (10.0, ("less", "less"), ("less", "less")),
        (3.5, ("plain", "less"), ("less", "plain")),  # two seconds a unit beside seven for three
        (0.5, ("plain", "plain"), ("plain", "plain")),
        (None, ("less", "less"), ("less", "less")),
    ],
)
def test_the_greedy_takes_what_saves_most_for_what_it_loses(budget, greedy, exact):
    layers = ((8.0, 1.0, 3.0), (6.0, 2.0, 1.0))
    instance = made(budget, layers)
    assert compressed_names(instance, "greedy") == greedy
    assert compressed_names(instance, "exact") == exact


def test_compressors_chosen_first_are_the_only_ones_left():
    layers = ((8.0, 1.0, 3.0), (6.0, 2.0, 1.0))
    assert names(compressed_first(made(10.0, layers))) == [["less"], ["less"]]
    assert names(compressed_first(made(3.5, layers))) == [["plain"], ["less"]]
    assert names(compressed_first(made(0.5, layers))) == [["plain"], ["plain"]]
    assert names(without_compression(made())) == [["plain"], ["plain"]]


@for_each("seed", seeds(2, 30))
def test_the_exact_compressors_are_the_best_of_all_on_the_routes(seed):
    instance = random_compressed(seed)
    plan = plain_plan(instance)
    base, tables = plan.choices(instance), tables_of(instance)
    found = compressed_last(instance, plan, "exact", 0, Clock(Limits(), None))
    told = evaluate(instance, found, exact=True)
    assert told.feasible
    routes = FixedRoutes.of(instance, plan.design, base)

    def alike(layer, a, b):
        one, other = layer.strategies[a], layer.strategies[b]
        kept = {"name", "encoding_s", "error", "reductions"}
        sets = [[each.groups for each in strategy.reductions] for strategy in (one, other)]
        return one.model_dump(exclude=kept) == other.model_dump(exclude=kept) and sets[0] == sets[1]

    menus = [
        [b for b in range(len(layer.strategies)) if b == a or (alike(layer, a, b) and layer.strategies[b].error)]
        for layer, a in zip(instance.layers, base, strict=True)
    ]
    best = min(routes.time_s(choices) for choices in itertools.product(*menus) if tables.fits(choices))
    assert float(told.objective) == pytest.approx(best, rel=1e-6)


@for_each("seed", seeds(1, 12))
def test_apart_is_never_better_than_all_at_once_and_last_never_worse_than_never(seed):
    instance = random_compressed(seed, layers=2)
    best, values = best_of_all(instance), {}
    for options in ("compression=last", "compression=last,compressors=exact", "compression=first", "compression=never"):
        found = ddlopt.solve(instance, f"compression-apart:{options}", time_limit=10)
        assert found.checked
        assert found.objective >= best * (1 - 1e-9)
        values[options] = found.objective
    assert values["compression=last"] <= values["compression=never"] * (1 + 1e-9)
    assert values["compression=last,compressors=exact"] <= values["compression=last"] * (1 + 1e-9)


def test_what_is_sent_in_the_end_is_what_the_design_is_for():
    instance = random_compressed(1)
    plan = compressed_last(instance, plain_plan(instance), "greedy", 0, Clock(Limits(), None))
    assert plan == plan_of(instance, plan.choices(instance), plan.design)


@pytest.mark.parametrize("options", ["compression=now", "compressors=all"])
def test_bad_options_are_a_line(options):
    with pytest.raises(OptionError) as error:
        ddlopt.solve(made(), f"compression-apart:{options}")
    one_line(error.value, "use one of")
