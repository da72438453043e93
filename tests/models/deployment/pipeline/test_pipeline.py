"""Instances, the check and the bound of pipelines: by hand, broken in every way, and against all plans."""

from fractions import Fraction

import pytest
from pipeline_cases import best_of_all, drawn, plans
from refusals import one_line
from volume import for_each, seeds

from ddlopt.models.deployment import PipelineInstance, PipelinePlan
from ddlopt.models.deployment.pipeline.bounds import exact_pipeline_bound, pipeline_bound
from ddlopt.models.deployment.pipeline.evaluate import evaluate_pipeline
from ddlopt.models.errors import InfeasibleError, InstanceError
from ddlopt.models.tolerances import FEASIBILITY_TOL


def option(name, time_s, weight=0.0, kept=0.0, fixed=0.0, gathered=(), scattered=()):
    sizes = {"weight_bytes": weight, "kept_bytes": kept, "fixed_bytes": fixed}
    return {"name": name, "time_s": time_s, "gathered": list(gathered), "scattered": list(scattered), **sizes}


def layer(name, *menus):
    return {"name": name, "menus": [{"tensor": t, "options": list(options)} for t, options in menus]}


DATA = {
    "name": "three",
    "layers": [
        layer("first", (1, [option("kept", 4, 6, 5, 2, scattered=[(1, 3)]), option("again", 6, 6, 1, 2)])),
        layer("middle", (1, [option("kept", 3, 2, 2, 1)]), (2, [option("kept", 2, 1, 1, 1, gathered=[(0, 7)])])),
        layer("last", (1, [option("kept", 5, 4, 1, 1)])),
    ],
    "edges": [
        {"maker": 0, "user": 1, "size_bytes": 8},
        {"maker": 1, "user": 2, "size_bytes": 2},
        {"maker": 0, "user": 2, "size_bytes": 1},
    ],
    "devices": 6,
    "memory_bytes": 17,
    "bandwidth_bytes_per_s": 4,
    "micro_batches": 8,
}
STAGES = [
    {"layers": [0], "replicas": 2, "tensor": 1, "options": ["kept"]},
    {"layers": [1], "replicas": 1, "tensor": 2, "options": ["kept"]},
    {"layers": [2], "replicas": 2, "tensor": 1, "options": ["kept"]},
]


def instance(**changes):
    return PipelineInstance.from_data(DATA | changes)


def plan(*stages):
    return PipelinePlan.from_data({"instance": "three", "stages": list(stages)})


def changed(place, **changes):
    return plan(*(stage | (changes if number == place else {}) for number, stage in enumerate(STAGES)))


def test_times_and_memory_by_hand():
    # The first sends 8 + 3 and 1, twice, and all-reduces 4 / 8 of its 6, over 4 a second; half of it on each replica.
    first = (4 + (2 * 12 + 3) / 4) / 2
    # The second gets 8 + 7 and sends 2 on. The last gets 2 and 1.
    second, last = 2 + 2 * 17 / 4, (5 + (2 * 3 + 2) / 4) / 2
    assert second > max(first, last)
    for exact in (False, True):
        found = evaluate_pipeline(instance(), plan(*STAGES), exact)
        assert found.feasible
        assert found.objective == second
        # In flight: 5 replicas over 2, which is 3; the last 3 over 1; 2 over 2.
        assert found.details == {"stages": 3, "devices": 6, "largest_memory_bytes": 3 * 5 + 2, "replicas": 5}
    assert isinstance(evaluate_pipeline(instance(), plan(*STAGES), exact=True).objective, Fraction)
    whole = plan({"layers": [2, 0, 1], "replicas": 4, "tensor": 1, "options": ["kept", "again", "kept"]})
    # Nothing is sent; 4 · 3 / 8 of 12 is all-reduced.
    assert evaluate_pipeline(instance(), whole).objective == (5 + 6 + 3 + 18 / 4) / 4
    more = instance(devices=8)
    slow = changed(0, replicas=1)
    assert evaluate_pipeline(more, slow).objective == max(4 + 2 * 12 / 4, second)
    faster = [{**STAGES[0], "replicas": 1}, {**STAGES[1], "replicas": 2}, STAGES[2]]
    assert evaluate_pipeline(more, plan(*faster)).objective == 4 + 2 * 12 / 4


BROKEN = {
    "every layer is in one stage": [
        plan(*STAGES[:2]),
        changed(2, layers=[2, 1], options=["kept", "kept"]),
        changed(2, layers=[2, 2], options=["kept", "kept"]),
    ],
    "layers are known": [changed(0, layers=[0, 3], options=["kept", "kept"]), changed(0, layers=[-1])],
    "every stage has a layer": [plan(*STAGES, {"layers": [], "replicas": 1, "tensor": 1, "options": []})],
    "replicas divide the samples": [changed(0, replicas=3), changed(0, replicas=0), changed(0, replicas=-2)],
    "every layer has an option": [changed(0, options=[]), changed(0, options=["kept", "kept"])],
    "options are those of the menu": [changed(0, options=["other"]), changed(0, tensor=2), changed(1, tensor=4)],
    "no edge leads back": [plan(STAGES[1], STAGES[0], STAGES[2]), plan(STAGES[2], STAGES[0], STAGES[1])],
}


@pytest.mark.parametrize("kind", BROKEN)
@pytest.mark.parametrize("exact", [False, True])
def test_what_is_broken_is_found(kind, exact):
    for broken in BROKEN[kind]:
        found = evaluate_pipeline(instance(), broken, exact)
        assert not found.feasible
        assert kind in {each.kind for each in found.violations}


@pytest.mark.parametrize("exact", [False, True])
def test_layers_that_are_nowhere_or_twice_are_counted(exact):
    for broken, times in zip(BROKEN["every layer is in one stage"], (0, 2, 2), strict=True):
        told = evaluate_pipeline(instance(), broken, exact).violations
        assert [each.lhs for each in told if each.kind == "every layer is in one stage"] == [times]


@pytest.mark.parametrize("exact", [False, True])
def test_as_many_replicas_as_samples_are_allowed(exact):
    whole = plan({"layers": [0, 1, 2], "replicas": 8, "tensor": 1, "options": ["kept"] * 3})
    assert evaluate_pipeline(instance(devices=8), whole, exact).feasible


@pytest.mark.parametrize("exact", [False, True])
def test_limits_are_held(exact):
    limits = {"devices": ("devices suffice", 5), "memory_bytes": ("memory suffices", 16.9)}
    for field, (kind, value) in limits.items():
        found = evaluate_pipeline(instance(**{field: value}), plan(*STAGES), exact)
        assert [each.kind for each in found.violations] == [kind]
    found = evaluate_pipeline(instance(micro_batches=4), plan(*STAGES), exact)
    assert [(each.kind, each.lhs, each.rhs) for each in found.violations] == [("no more replicas than samples", 5, 4)]


@pytest.mark.parametrize("exact", [False, True])
def test_what_decimals_add_up_to_fits(exact):
    """0.1 and 0.2, read as the fractions that they are, are more than 0.3."""
    one = layer("one", (1, [option("a", 1, kept=0.1, fixed=0.2)]))
    nearly = instance(layers=[one], edges=[], memory_bytes=0.3)
    alone = {"layers": [0], "replicas": 1, "tensor": 1, "options": ["a"]}
    assert evaluate_pipeline(nearly, plan(alone), exact).feasible


BAD = {
    "no layers": ({"layers": []}, "layers"),
    "no devices": ({"devices": 0}, "devices"),
    "a cycle": ({"edges": [*DATA["edges"], {"maker": 2, "user": 0, "size_bytes": 1}]}, "the layers form a cycle"),
    "an edge twice": ({"edges": [*DATA["edges"], DATA["edges"][0]]}, "edges[3] leads from layer 0 to 1, as another"),
    "an unknown layer": ({"edges": [{"maker": 0, "user": 9, "size_bytes": 1}]}, "there are 3 (0..2)"),
    "no such edge": ({"edges": DATA["edges"][1:]}, "with which it has no such edge"),
    "the same name": ({"layers": [*DATA["layers"][:2], DATA["layers"][0]]}, "is named 'first', like layers[0]"),
    "degrees twice": ({"layers": [layer("one", (1, [option("a", 1)]), (1, [option("b", 1)]))]}, "each once, ascending"),
    "options twice": ({"layers": [layer("one", (1, [option("a", 1), option("a", 2)]))]}, "names must differ"),
    "negative bytes": (
        {"layers": [layer("one", (1, [option("a", 1, scattered=[(1, -1)])])), *DATA["layers"][1:]]},
        "bytes are at least 0",
    ),
    "a layer twice": (
        {"layers": [layer("one", (1, [option("a", 1, scattered=[(1, 1), (1, 2)])])), *DATA["layers"][1:]]},
        "names layer 1 twice",
    ),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_data_are_refused_in_a_line(case):
    changes, told = BAD[case]
    if "edges" not in changes and len(changes.get("layers", DATA["layers"])) < len(DATA["layers"]):
        changes = {**changes, "edges": []}
    with one_line(InstanceError, told):
        instance(**changes)


@for_each("seed", seeds(25, 150))
def test_no_plan_is_better_than_the_bound(seed):
    drawn_one = drawn(seed, most=3)
    best = best_of_all(drawn_one)
    try:
        bound = exact_pipeline_bound(drawn_one)
    except InfeasibleError:
        assert best is None
        return
    assert pipeline_bound(drawn_one) <= bound
    assert best is None or bound <= best


def test_the_bound_by_hand():
    # The last alone on 4 replicas: (5 + 4 · 3 / 8 · 4 / 4) / 4; together 2 · 2 + 4 + 5 or 3 + 4 + 5 over 6 devices.
    assert exact_pipeline_bound(instance()) == max(Fraction(12, 6), (4 + Fraction(3, 8) * 6) / 4)
    assert exact_pipeline_bound(instance(devices=24)) == Fraction(4 + Fraction(7, 8) * 6) / 8
    with one_line(InfeasibleError, "layer 'first' does not fit: its least memory is 3 bytes, by 'again' on 1 devices"):
        pipeline_bound(instance(memory_bytes=2.5))
    assert pipeline_bound(instance(memory_bytes=3 * (1 - FEASIBILITY_TOL / 2))) > 0  # as much room as the check has
    only = instance(layers=[*DATA["layers"][:2], layer("last", (8, [option("kept", 1)]))])
    with one_line(InfeasibleError, "layer 'last' needs 8 devices at least, and there are 6"):
        pipeline_bound(only)


def test_all_plans_are_different():
    found = [each.digest for each in plans(drawn(3))]
    assert len(found) == len(set(found)) > 3
