"""Orders of servers on closed rings."""

import itertools

import numpy as np
import pytest

from ddlopt.frontier.codesign.closed_columns import RingStart, starts_for
from ddlopt.frontier.codesign.joint.arrange import arranged
from ddlopt.frontier.codesign.joint.arrange_kernels import weighted_volume
from ddlopt.models.topology import AllReduceGroup, TopologyInstance


@pytest.mark.parametrize("optics", ["one_way", "duplex"])
def test_arranged_rings_stay_closed_and_shorten_ways(optics):
    n, blocks = 16, [tuple(range(first, first + 8)) for first in (0, 8)]
    rng = np.random.default_rng(1)
    traffic = rng.random((n, n)) * (rng.random((n, n)) < 0.3)
    np.fill_diagonal(traffic, 0)
    job = TopologyInstance(
        name="two blocks",
        servers=n,
        degree=4,
        link_bandwidth_bytes_per_s=1.0,
        optics=optics,
        allreduce_groups=tuple(AllReduceGroup(members=block, gradient_bytes=5.0) for block in blocks),
        traffic_bytes=traffic,
    )
    for start in itertools.islice(starts_for(job, 0), 6):
        if not isinstance(start, RingStart):
            continue
        lengths = np.ones(job.degree)
        before = weighted_volume(start.heads, lengths, traffic)
        after = arranged(job, start, lengths)
        assert weighted_volume(after.heads, lengths, traffic) <= before * (1 + 1e-9)
        for column in after.heads.T:
            assert sorted(column.tolist()) == list(range(n))
            if optics == "duplex":
                assert (column[column] == np.arange(n)).all()
        for cycle, other in zip(start.on_links, after.on_links, strict=True):
            for first, places in cycle.stretches:
                was, now = (set(each.order[first : first + places]) for each in (cycle, other))
                assert was == now
            for tail, head in itertools.pairwise((*other.order, other.order[0])):
                assert head in after.heads[tail]
