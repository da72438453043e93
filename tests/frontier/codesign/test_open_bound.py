"""The bound by all choices but those of tables, which are left open, against all plans of drawn jobs."""

import itertools

import numpy as np
import pytest
from codesign_cases import best_of_all, drawn
from volume import for_each, slow

from ddlopt import instances
from ddlopt.frontier.codesign.classes import closed_parts_below
from ddlopt.frontier.codesign.joint.exclusion import Blocks, blocks_of_digits
from ddlopt.frontier.codesign.joint.open_bound import bound_by_open_parts
from ddlopt.frontier.codesign.joint.open_links import OpenPart, Options, links_of_block
from ddlopt.frontier.codesign.layer_tree import LayerTree, Sums, best_weights
from ddlopt.frontier.codesign.open_layers import (
    Needs,
    moved_to,
    needs_of,
    nothing_open,
    open_layers,
    strategies_of_readers,
    tables_left_open,
    with_images,
)
from ddlopt.models.codesign.demand import demand_of
from ddlopt.models.codesign.tables import tables_of
from ddlopt.solvers.backends.highs import Highs
from ddlopt.solvers.contracts import Limits, Status
from ddlopt.solvers.heuristic import Clock

CLOCK = Clock(Limits(), None)
WITH_TABLES = [64, 13, 21, 33, 61, 81, 177, 205, 368]
"""Seeds of drawn jobs with tables."""


@for_each("seed", [WITH_TABLES[0], *map(slow, WITH_TABLES[1:])])
@pytest.mark.parametrize("above", [1.05, 0.999])
def test_no_plan_is_excluded(seed, above):
    instance = drawn(seed, 4, 4)
    best = best_of_all(instance)
    bound = bound_by_open_parts(instance, best * above, 0, CLOCK)
    assert 0 < bound <= best * min(1.0, above) * (1 + 1e-6)


@for_each("name", ["tiny-cosets-n6-d2", *map(slow, ["tiny-tables-n4-d2", "tiny-duplex-n4-d3", "tiny-factors-n6-d3"])])
def test_no_plan_of_the_library_is_excluded(name):
    instance, best = (call(f"codesign/{name}") for call in (instances.load, instances.record))
    bound = bound_by_open_parts(instance, best.found.objective * 1.02, 0, CLOCK)
    assert 0 < bound <= best.found.objective * (1 + 1e-6)


@pytest.mark.parametrize("name", ["tiny-drawn-n5-d2", "tiny-tables-n4-d2"])
def test_all_choices_of_little_time_are_of_a_part(name):
    instance = instances.load(f"codesign/{name}")
    tables, most = tables_of(instance), 1.02 * instances.record(f"codesign/{name}").found.objective
    left_open = tables_left_open(tables)
    parts = {}
    for readers in strategies_of_readers(tables, left_open):
        options = Options(instance, open_layers(tables, left_open, readers))
        found = closed_parts_below(instance, left_open, readers, most, 10**6)
        parts[tuple(readers.values())] = [OpenPart(needs_of(tables, *each), options) for each in found]
    met = 0
    for choices in itertools.product(*map(range, tables.sizes)):
        load = demand_of(tables).least_bytes(np.concatenate(tables.bytes_of(choices)))
        least_s = instance.iteration_time_s(_busiest(tables, choices), load)
        if least_s <= most:
            met += 1
            near = [each.least_s(np.inf) for each in parts[tuple(choices[layer] for layer in readers)]]
            assert min(near) <= least_s * (1 + 1e-9)
    assert met


def _busiest(tables, choices):
    tree = LayerTree(tables)
    return float(sum(tree.busy_s(layer)[a] for layer, a in enumerate(choices)).max())


def test_weights_give_the_linear_relaxation():
    tables = tables_of(instances.load("codesign/dlrm-n12-d4"))
    tree = LayerTree(tables)
    assert Sums(tree, best_weights(tree)).least_s == pytest.approx(34.32848320908821e-3, rel=1e-5)


@pytest.mark.parametrize(("n", "size"), [(12, 1), (12, 2), (12, 3), (12, 4), (16, 4)])
def test_images_of_a_block_are_blocks(n, size):
    for servers, images in blocks_of_digits(n, size):
        met, new = {servers}, [servers]
        while new:
            block = new.pop()
            moved = {tuple(sorted(image[s] for s in block)) for image in images} - met
            met |= moved
            new += moved
        assert sorted(itertools.chain(*met)) == list(range(n))


def test_a_load_that_is_not_symmetric_is_asked_for_with_all_links():
    """One server sends a byte to each of the three others along a cycle: the busiest link carries three."""
    instance = instances.load("codesign/tiny-tables-n4-d2").changed(degree=1)
    tables, traffic = tables_of(instance), np.zeros((4, 4))
    traffic[0, 1:] = 1.0
    needs = Needs(traffic, np.zeros(len(tables.groups)), np.zeros(4))
    part, byte_s = OpenPart(needs, Options(instance, nothing_open(tables))), 1 / instance.link_bandwidth_bytes_per_s
    assert not Blocks(instance).exclude(part, 3.01 * byte_s, 0, CLOCK)
    assert Blocks(instance).exclude(part, 2.99 * byte_s, 0, CLOCK)


def test_images_of_options_are_options():
    instance = instances.load("codesign/dlrm-n16-d4")
    tables = tables_of(instance)
    left_open = tables_left_open(tables)
    layers = open_layers(tables, left_open, next(strategies_of_readers(tables, left_open)))
    images = [tuple((s + 4) % 16 for s in range(16))]
    more = with_images(tables, layers, images)
    assert sum(more.layers) == sum(layers.layers) == len(left_open)
    assert len(with_images(tables, more, images).options) == len(more.options) > len(layers.options)


def test_options_are_closed_under_every_permutation_that_is_given():
    """Not under the first alone: it is the weakest here."""
    tables = tables_of(instances.load("codesign/dlrm-n16-d4"))
    left_open = tables_left_open(tables)
    layers = open_layers(tables, left_open, next(strategies_of_readers(tables, left_open)))
    images = [tuple((s + step) % 16 for s in range(16)) for step in (8, 4)]
    more = with_images(tables, layers, images)
    kinds = [
        [more.options[option] for each, option in more.choices if each == kind] for kind in range(len(more.layers))
    ]
    looks = [{(each.traffic.tobytes(), each.rings.tobytes(), each.busy_s.tobytes()) for each in of} for of in kinds]
    for image in images:
        for of in kinds:
            moved = [moved_to(tables, each, image) for each in of]
            assert {(each.traffic.tobytes(), each.rings.tobytes(), each.busy_s.tobytes()) for each in moved} in looks


def test_links_of_the_best_plan_serve_it():
    instance, plan = (call("codesign/ncf-n16-d4") for call in (instances.load, instances.best))
    tables, best_s = tables_of(instance), instances.record("codesign/ncf-n16-d4").found.objective
    left_open = tables_left_open(tables)
    names = [[strategy.name for strategy in layer.strategies] for layer in instance.layers]
    choices = [of.index(name) for of, name in zip(names, plan.strategies, strict=True)]
    readers = {reader: choices[reader] for source, reader in instance.edges if source in left_open}
    layers = open_layers(tables, left_open, readers)
    part = OpenPart(_needs_of_closed(tables, choices, left_open), Options(instance, layers))

    def status(most_s):
        model = links_of_block(part, most_s, range(instance.servers))
        model.link.fix(0)
        for i, j, count in plan.design.links:
            model.link[i, j].fix(count)
        return Highs().solve(model, Limits(60.0), 0).status

    assert status(best_s * (1 + 1e-6)) is Status.OPTIMAL
    assert status(best_s * 0.98) is Status.INFEASIBLE


def _needs_of_closed(tables, choices, left_open):
    tree, moved = LayerTree(tables), np.zeros(len(tables.patterns))
    closed = [layer for layer in range(len(choices)) if layer not in left_open]
    reduced = sum(tree.figures[layer][choices[layer], : tree.sets] for layer in closed)
    for edge, (source, target) in enumerate(tables.instance.edges):
        pattern = tables.moves[edge][choices[source], choices[target]]
        if source not in left_open and pattern >= 0:
            moved[pattern] += tables.edge_bytes[edge]
    return needs_of(tables, reduced, moved, sum(tree.busy_s(layer)[choices[layer]] for layer in closed))
