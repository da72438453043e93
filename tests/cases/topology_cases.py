"""Small jobs whose links are to be chosen: the busiest link's bytes are the seconds of an iteration."""

import numpy as np

from ddlopt.models.topology import AllReduceGroup, TopologyInstance

DANOINT = [
    [0, 10, 7, 13, 12, 13, 6, 13],
    [14, 0, 15, 13, 12, 9, 9, 9],
    [13, 9, 0, 11, 6, 5, 11, 8],
    [7, 8, 15, 0, 7, 6, 11, 9],
    [8, 12, 12, 9, 0, 9, 14, 11],
    [5, 11, 11, 7, 9, 0, 15, 12],
    [6, 9, 7, 14, 10, 12, 0, 7],
    [11, 7, 8, 6, 10, 5, 14, 0],
]
"""Bytes between the servers of MIPLIB's danoint."""


def job(traffic, degree=2, groups=(), **options):
    """A job that sends this traffic, with all-reduce groups given as (members, bytes)."""
    figures = {
        "name": "job",
        "servers": len(traffic),
        "degree": degree,
        "link_bandwidth_bytes_per_s": 1.0,
        "traffic_bytes": np.asarray(traffic, dtype=float),
        "allreduce_groups": [AllReduceGroup(members=members, gradient_bytes=size) for members, size in groups],
    }
    return TopologyInstance(**figures | options)


def all_to_all(n, degree=2, **options):
    """Everybody sends one byte to everybody."""
    return job(1 - np.eye(n), degree, **options)
