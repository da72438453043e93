"""The bound with the links of one block of servers, against all plans of drawn jobs."""

import numpy as np
import pytest
from codesign_cases import best_of_all
from volume import for_each, slow

from ddlopt import instances
from ddlopt.frontier.codesign.formulations.block_links import BlockLinks
from ddlopt.frontier.codesign.joint.master import Master
from ddlopt.frontier.codesign.one_block import blocks_of, one_block
from ddlopt.models.codesign import CodesignInstance, Device, Layer, Layout, Reduction, Strategy
from ddlopt.models.codesign.tables import tables_of
from ddlopt.solvers.contracts import Limits

PAIRS, COSETS, ALL, ODD = ((0, 1), (2, 3)), ((0, 2), (1, 3)), ((0, 1, 2, 3),), ((0, 2),)


def alike(seed):
    """Four servers whose groups, and most of whose traffic, look alike from both pairs."""
    rng = np.random.default_rng([7, seed])

    def strategy(place):
        amounts = np.where(rng.random(4) < 0.3, 0.0, rng.uniform(0.2, 4.0, 4).round(2)).tolist()
        traffic = {(0, 3): 1.0} if rng.random() < 0.3 else {}
        for s, t in ((s, t) for s in (0, 1) for t in range(4) if s != t and rng.random() < 0.4):
            amount = round(float(rng.uniform(0.2, 3.0)), 2)
            for ends in ((s, t), ((s + 2) % 4, (t + 2) % 4)):
                traffic[ends] = traffic.get(ends, 0.0) + amount
        return Strategy(
            name=f"strategy {place}",
            writes=0,
            measured_s=round(float(rng.uniform(0, 1)), 2),
            reductions=tuple(Reduction(groups=q, bytes=amount) for q, amount in enumerate(amounts) if amount),
            traffic=tuple((s, t, amount) for (s, t), amount in traffic.items()),
        )

    layers = range(int(rng.integers(1, 3)))
    return CodesignInstance(
        name="alike",
        servers=4,
        degree=int(rng.integers(1, 4)),
        link_bandwidth_bytes_per_s=1.0,
        optics=str(rng.choice(["one_way", "duplex"])),
        parallel_links=bool(rng.random() < 0.7),
        overlap=str(rng.choice(["none", "full"])),
        host_forwarding=bool(rng.random() < 0.8),
        device=Device(flops_per_s=1.0, convolution_flops_per_s=1.0, memory_bytes_per_s=1.0),
        layouts=(Layout(batch_parts=4, servers=(0, 1, 2, 3)),),
        group_sets=(PAIRS, COSETS, ALL, ODD),
        layers=tuple(Layer(name=f"layer {i}", strategies=(strategy(0), strategy(1))) for i in layers),
    )


@for_each("seed", [5, *map(slow, set(range(60)) - {5})])
def test_no_bound_is_above_the_best_plan(seed):
    instance = alike(seed)
    best = best_of_all(instance)
    if np.isinf(best):
        return
    for blocks in blocks_of(tables_of(instance), 4):
        proposal = Master(instance).in_block(blocks, Limits(gap=1e-7), 0, (0,) * len(instance.layers), best, 10**6)
        assert proposal.bound_s <= best * (1 + 1e-5)


def test_what_blocks_see_alike():
    tables = tables_of(alike(0))
    (pair, image), *others = blocks_of(tables, 4)
    assert (pair, image) == ((0, 1), (2, 3, 0, 1))
    assert others == [((0, 2), (1, 0, 3, 2))]
    seen = one_block(tables, pair, image)
    # Pairs are inside; cosets and all have members outside. One coset alone looks alike from both pairs.
    assert set(seen.rings) == {((0, 1), 0), ((0,), 1), ((1,), 1), ((0, 1), 2)}
    assert seen.beside[:4].tolist() == [0.0, 0.0, 0.0, 0.0]
    # From cosets it does not: of its two hop bytes each has one.
    assert one_block(tables, *others[0]).beside[:4].tolist() == [0.0, 0.0, 0.0, 1.0]


@pytest.mark.parametrize(
    ("servers", "image"), [((0, 1), (1, 2, 3, 0)), ((0, 1), (2, 3, 0, 0)), ((0, 1, 2, 3), (0, 1, 2, 3))]
)
def test_blocks_that_are_none_are_refused(servers, image):
    assert "blocks" in BlockLinks(servers=servers, image=image, most_s=1.0).refuses(alike(0))


@slow
def test_a_pair_without_a_link_takes_two_hops():
    """Five of sixteen links leave each block of four, so that the other eleven leave out a pair of twelve."""
    instance, record = instances.load("codesign/resnet50-n12-d4"), instances.record("codesign/resnet50-n12-d4")
    plan = instances.best("codesign/resnet50-n12-d4")
    blocks = next(each for each in blocks_of(tables_of(instance), 4) if each[0] == (0, 1, 2, 3))
    proposal = Master(instance).in_block(
        blocks, Limits(300.0, 1e-5), 0, plan.choices(instance), record.found.objective, 10**6
    )
    assert proposal.bound_s >= record.found.objective * (1 - 1e-4)
