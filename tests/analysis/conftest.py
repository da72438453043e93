"""A small job and results about it, made without a solver."""

import numpy as np
import pytest

from ddlopt.models.topology import AllReduceGroup, Ring, Route, TopologyDesign, TopologyInstance


@pytest.fixture
def instance():
    """Four servers, two links each way; an all-reduce and traffic between opposite servers."""
    traffic = np.zeros((4, 4))
    traffic[0, 2] = traffic[2, 0] = 6e6
    return TopologyInstance(
        name="square",
        servers=4,
        degree=2,
        link_bandwidth_bytes_per_s=1e9,
        allreduce_groups=(AllReduceGroup(members=(0, 1, 2, 3), gradient_bytes=8e6),),
        traffic_bytes=traffic,
    )


@pytest.fixture
def design():
    """A ring with one link and, from 0 to 1, two of them; traffic goes round by two hops."""
    ring = Ring(group=0, members=(0, 1, 2, 3), share=1.0, paths=((0, 1), (1, 2), (2, 3), (3, 0)))
    routes = (
        Route(source=0, target=2, paths=((0, 1, 2),), fractions=(1.0,)),
        Route(source=2, target=0, paths=((2, 3, 0),), fractions=(1.0,)),
    )
    links = ((0, 1, 2), (1, 2, 1), (2, 3, 1), (3, 0, 1))
    return TopologyDesign(instance="square", links=links, rings=(ring,), routes=routes)
