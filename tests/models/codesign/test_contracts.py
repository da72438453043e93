"""The data of a co-design problem, what a choice of strategies makes of it, the check of a plan, and bad input."""

import itertools
import json
from collections import Counter
from fractions import Fraction

import numpy as np
import pytest
from refusals import one_line
from volume import for_each

from ddlopt.models.catalogue import family
from ddlopt.models.codesign import CodesignInstance, CodesignPlan, Layout, evaluate, job_of
from ddlopt.models.codesign.evaluate import _moved
from ddlopt.models.codesign.tables import moved_parts, tables_of
from ddlopt.models.errors import InfeasibleError, InstanceError, SolutionError
from ddlopt.models.topology import TopologyDesign
from ddlopt.models.topology.solution import Ring, Route

DATA = {
    "name": "two-layers",
    "servers": 4,
    "degree": 2,
    "link_bandwidth_bytes_per_s": 2.0,
    "device": {
        "flops_per_s": 4.0,
        "convolution_flops_per_s": 8.0,
        "memory_bytes_per_s": 1.0,
        "memory_bytes": 100.0,
    },
    "layouts": [
        {"batch_parts": 4, "servers": [0, 1, 2, 3]},
        {"batch_parts": 2, "channel_parts": 2, "servers": [0, 1, 2, 3]},
        {"batch_parts": 1, "servers": [2]},
    ],
    "group_sets": [[[0, 1, 2, 3]], [[0, 1], [2, 3]], [[0, 2], [1, 3]]],
    "layers": [
        {
            "name": "table",
            "output_bytes": 8.0,
            "strategies": [
                {
                    "name": "replicated", "writes": 0, "flops": 4.0, "memory_bytes": 70.0,
                    "reductions": [{"groups": 0, "bytes": 40.0}],
                },
                {"name": "owner", "writes": 2, "moved_bytes": 3.0, "flops": 4.0, "memory_bytes": 60.0},
            ],
        },
        {
            "name": "dense",
            "output_bytes": 4.0,
            "convolution": True,
            "strategies": [
                {
                    "name": "data", "reads": 0, "writes": 0, "flops": 4.0, "memory_bytes": 35.0,
                    "reductions": [{"groups": 0, "bytes": 8.0}],
                },
                {
                    "name": "column-2", "reads": 0, "writes": 1, "flops": 4.0, "memory_bytes": 30.0,
                    "reductions": [{"groups": 1, "bytes": 2.0}, {"groups": 2, "bytes": 3.0}],
                },
                {"name": "measured", "reads": 0, "writes": 1, "measured_s": 0.25, "traffic": [[0, 3, 5.0]]},
            ],
        },
    ],
    "edges": [[0, 1]],
}  # fmt: skip
INSTANCE = CodesignInstance.from_data(DATA)
RING = ((0, 1), (1, 2), (2, 3), (3, 0))
BACK = tuple((j, i) for i, j in RING)
LINKS = tuple((i, j, 1) for i, j in RING + BACK)


def plan(strategies, rings=(), routes=(), links=LINKS):
    design = TopologyDesign(instance="two-layers", links=links, rings=rings, routes=routes)
    return CodesignPlan(instance="two-layers", strategies=strategies, design=design)


def ring(group, members):
    hops = itertools.pairwise((*members, members[0]))
    return Ring(group=group, members=members, share=1.0, paths=tuple(hops))


def route(source, target, *through):
    return Route(source=source, target=target, paths=((source, *through, target),), fractions=(1.0,))


OWNED = plan(
    ("owner", "data"), [ring(0, (0, 1, 2, 3))],
    [route(2, 0, 1), route(2, 1), route(2, 3), route(0, 2, 3), route(1, 2), route(3, 2)],
)  # fmt: skip


def changed(path, value):
    """The data with one place changed; ``path`` is a list of keys."""
    data = json.loads(json.dumps(DATA))
    place = data
    for key in path[:-1]:
        place = place[key]
    if value is None:
        del place[path[-1]]
    else:
        place[path[-1]] = value
    return data


def test_a_plan_by_hand():
    # The owner looks up for 3 s, then everybody multiplies for 4 / 8 s; the owner is the busiest: 3.5 s. The table's
    # output, 8 bytes, lies on server 2; every server wants a quarter and sends its gradient back. The all-reduce sends
    # 2 · 3/4 · 8 = 12 bytes over the ring. Link 2 -> 3 has 12 + 2 of its own and 2 on the way from 0: 0 -> 3 -> 2 uses
    # 3 -> 2, so 2 -> 3 has 14; 1 -> 2 has 12 + 2, 0 -> ... : the busiest carry 14.
    found = evaluate(INSTANCE, OWNED, exact=True)
    assert found.feasible
    assert found.details["compute_s"] == Fraction(7, 2)
    assert found.details["max_link_load_bytes"] == 14
    assert found.objective == Fraction(7, 2) + 7
    assert evaluate(INSTANCE, OWNED).objective == pytest.approx(10.5, rel=1e-15)
    full = CodesignInstance.from_data(DATA | {"overlap": "full"})
    assert evaluate(full, OWNED).objective == 7


def test_columns_by_hand():
    # Blocks {0,1}, {2,3} reduce 2 bytes, cosets {0,2}, {1,3} three: 2 and 3 bytes each way. A ring of two goes there
    # and back; 0 -> 2 by 1, 2 -> 0 by 3, 1 -> 3 by 2, 3 -> 1 by 0.
    rings = [
        ring(0, (0, 1)), Ring(group=1, members=(0, 2), share=1, paths=((0, 1, 2), (2, 3, 0))),
        Ring(group=2, members=(1, 3), share=1, paths=((1, 2, 3), (3, 0, 1))), ring(3, (2, 3)),
    ]  # fmt: skip
    table = ring(0, (0, 1, 2, 3))
    moved = [Ring(group=each.group + 1, members=each.members, share=1, paths=each.paths) for each in rings]
    found = evaluate(INSTANCE, plan(("replicated", "column-2"), [table, *moved]))
    assert found.feasible
    # 40 bytes among four: 60 a hop; 0 -> 1: 60 + 2 + 3 (0 -> 2) + 3 (3 -> 1).
    assert found.details["max_link_load_bytes"] == 68
    assert found.details["compute_s"] == 1 + 0.5
    job = job_of(INSTANCE, (0, 1))
    assert [group.members for group in job.allreduce_groups] == [(0, 1, 2, 3), (0, 1), (0, 2), (1, 3), (2, 3)]


def test_own_traffic_and_measured_time():
    job = job_of(INSTANCE, (0, 2))
    assert job.traffic_bytes[0, 3] == 5
    assert job.traffic_bytes.sum() == 5
    assert job.compute_s == 1.25


@for_each("choices", list(itertools.product(range(2), range(3))))
def test_the_check_and_the_tables_agree(choices):
    # Any design will do to see what the check takes the demand to be: one without rings and routes misses all of it.
    job = job_of(INSTANCE, choices)
    names = [layer.strategies[a].name for layer, a in zip(INSTANCE.layers, choices, strict=True)]
    bare = TopologyDesign(instance="two-layers", links=LINKS)
    found = evaluate(INSTANCE, CodesignPlan(instance="two-layers", strategies=names, design=bare))
    missed = Counter(violation.kind for violation in found.violations)
    assert missed["traffic_is_routed"] == np.count_nonzero(job.traffic_bytes)
    assert missed["ring_shares_sum_to_one"] == len(job.allreduce_groups)
    assert found.details["compute_s"] == tables_of(INSTANCE).compute_of(choices)


def element_by_element(written, read, servers, cells):
    """Parts that move, by looking where each of cells × cells elements is and where it is wanted."""
    moved = np.zeros((servers, servers))
    for sample, channel in itertools.product(range(cells), repeat=2):
        places = [
            layout.servers[
                (sample * layout.batch_parts // cells) * layout.channel_parts + channel * layout.channel_parts // cells
            ]
            for layout in (written, read)
        ]
        moved[places[0], places[1]] += 1 / cells**2
    np.fill_diagonal(moved, 0)
    return moved


def layouts_of(rng, servers):
    shapes = [(p, q) for p, q in itertools.product((1, 2, 3, 4, 6), repeat=2) if p * q <= servers]
    batch, channels = shapes[rng.integers(len(shapes))]
    order = rng.permutation(servers)[: batch * channels].tolist()
    return Layout(batch_parts=batch, channel_parts=channels, servers=order)


@for_each("seed", range(20))
def test_what_moves_between_layouts(seed):
    rng = np.random.default_rng(seed)
    written, read = layouts_of(rng, 12), layouts_of(rng, 12)
    expected = element_by_element(written, read, 12, 12)
    np.testing.assert_allclose(_moved(written, read, 12), expected, atol=1e-12)
    np.testing.assert_allclose(moved_parts(written, read, 12).toarray(), expected, atol=1e-12)


def test_layers_on_different_servers_run_side_by_side():
    data = changed(["layers", 1, "strategies", 0, "writes"], 2)
    instance = CodesignInstance.from_data(data)
    # Owner and dense both on server 2: one after the other; replicated: server 2 does both.
    assert tables_of(instance).compute_of((1, 0)) == 3.5
    assert tables_of(instance).compute_of((0, 0)) == 1.5
    parallel = CodesignInstance.from_data(changed(["edges"], []))
    assert tables_of(parallel).compute_of((1, 0)) == 3.5  # server 2 has both
    elsewhere = DATA["layouts"] + [{"batch_parts": 1, "servers": [1]}]
    apart = CodesignInstance.from_data(changed(["edges"], []) | {"layouts": elsewhere})
    data = json.loads(apart.to_json())
    data["layers"][1]["strategies"][0]["writes"] = 3
    assert tables_of(CodesignInstance.from_data(data)).compute_of((1, 0)) == 3.0


def test_nothing_to_send():
    data = changed(["layers", 1, "strategies", 2], {"name": "alone", "reads": 2, "writes": 2, "measured_s": 1.0})
    instance = CodesignInstance.from_data(data)
    assert job_of(instance, (1, 2)) is None
    found = evaluate(instance, plan(("owner", "alone"), links=()), exact=True)
    assert found.feasible
    assert found.objective == 4
    for links, kind in (((0, 0, 1),), "no_link_to_itself"), (((0, 1, 9),), "out_degree"):
        assert kind in {each.kind for each in evaluate(instance, plan(("owner", "alone"), links=links)).violations}
    rings = evaluate(instance, plan(("owner", "alone"), [ring(0, (0, 1, 2, 3))], links=LINKS))
    assert [each.kind for each in rings.violations] == ["ring_has_a_group"]


@for_each(
    ("answer", "kind"),
    [
        (plan(("owner",)), "layer_has_a_strategy"),
        (plan(("owner", "row-2")), "strategy_exists"),
        (plan(("replicated", "data"), [ring(0, (0, 1, 2, 3))]), "memory_suffices"),
        (plan(OWNED.strategies, OWNED.design.rings, OWNED.design.routes, links=(*LINKS, (0, 2, 1))), "out_degree"),
        (plan(OWNED.strategies, OWNED.design.rings, OWNED.design.routes[1:]), "traffic_is_routed"),
        (plan(OWNED.strategies, (), OWNED.design.routes), "ring_shares_sum_to_one"),
        (plan(OWNED.strategies, [ring(1, (0, 1, 2, 3))], OWNED.design.routes), "ring_has_a_group"),
    ],
)
def test_violations(answer, kind):
    found = evaluate(INSTANCE, answer)
    assert not found.feasible
    assert kind in {violation.kind for violation in found.violations}


def test_a_plan_of_another_instance():
    other = CodesignPlan(**OWNED.model_dump(exclude={"instance_digest"}), instance_digest="0" * 64)
    with pytest.raises(SolutionError, match="was made for instance 'two-layers'"):
        evaluate(INSTANCE, other)


@for_each(
    ("path", "value", "message"),
    [
        (["degree"], 4, "degree is 4, but 4 servers have at most 3 neighbours; use degree <= 3"),
        (["layers"], [], "there are no layers"),
        (["layouts", 0, "batch_parts"], 3, r"layouts\[0\] has 4 servers, but 3 × 1 blocks need 3"),
        (["layouts", 0, "servers", 1], 4, r"layouts\[0\].servers contains server 4, but there are 4 servers \(0..3\)"),
        (["layouts", 0, "servers", 1], 2, r"layouts\[0\].servers contains server 2 twice"),
        (["group_sets", 1, 0], [1, 0], r"group_sets\[1\]\[0\] must list at least 2 servers in increasing order"),
        (["group_sets", 1, 0], [1], r"group_sets\[1\]\[0\] must list at least 2 servers"),
        (["group_sets", 1, 0], [1, 2], r"group_sets\[1\] contains server 2 twice"),
        (["layers", 1, "name"], "table", r"layers\[1\] is named 'table', like layers\[0\]"),
        (["layers", 1, "strategies"], [], "layer 'dense' has no strategies"),
        (["layers", 1, "strategies", 1, "name"], "data", "layer 'dense' has two strategies named 'data'"),
        (["layers", 1, "strategies", 1, "writes"], 3, "strategy 'column-2': writes is 3, but there are 3 layouts"),
        (["layers", 1, "strategies", 1, "writes"], None, "writes: is missing"),
        (["layers", 1, "strategies", 1, "flops"], -1, r"flops: .*greater than or equal to 0"),
        (["layers", 1, "strategies", 2, "measured_s"], -0.25, r"measured_s: .*greater than or equal to 0"),
        (["layers", 1, "strategies", 2, "traffic"], [[0, 3, -5]], "traffic from 0 to 3 is -5; bytes must be >= 0"),
        (["layers", 1, "strategies", 2, "traffic"], [[0, 0, 5]], "traffic contains server 0 twice"),
        (["layers", 1, "strategies", 0, "reductions", 0, "groups"], 9, r"names group_sets\[9\], but there are 3"),
        (["edges"], [[0, 2]], r"edges\[0\] names layer 2, but there are 2 layers"),
        (["edges"], [[0, 1], [0, 1]], r"edges\[1\] leads from 'table' to 'dense' again"),
        (["layers", 1, "strategies", 0, "reads"], None, "its strategy 'data' reads no activation"),
        (["device", "flops_per_s"], 0, "device.flops_per_s: .*greater than 0"),
    ],
)
def test_bad_instances(path, value, message):
    with one_line(InstanceError, match=message):
        CodesignInstance.from_data(changed(path, value))


def test_a_cycle_is_named():
    data = changed(["edges"], [[0, 1], [1, 0]])
    for strategy in data["layers"][0]["strategies"]:
        strategy["reads"] = 0
    with pytest.raises(InstanceError, match=r"the graph of layers is cyclic: '(table|dense)' -> '(table|dense)' -> "):
        CodesignInstance.from_data(data)


def test_too_little_memory_names_the_layer_and_the_bytes():
    instance = CodesignInstance.from_data(changed(["device", "memory_bytes"], 55.0))
    with pytest.raises(InfeasibleError, match=r"layer 'table' fits in memory: .* 5 bytes are missing"):
        family("codesign").bound(instance)
