"""Bounds on the busiest link of every design with those of blocks and cells: the entry point ``ddlopt.bounds``."""

from math import inf

from ddlopt.frontier.topology.blocks.block_bound import block_bound
from ddlopt.frontier.topology.blocks.cell_bound import cell_bound
from ddlopt.models.topology import bounds as plain
from ddlopt.models.topology.hop_bytes import bytes_under_way, level_sizes, views_of
from ddlopt.models.topology.instance import TopologyInstance


def congestion_bounds(instance: TopologyInstance, enough: float = inf) -> dict[str, float]:
    """Those of :func:`ddlopt.models.topology.bounds.congestion_bounds`, and of blocks and cells where there are groups.

    Where one is ``enough``, those that take longer are left out: of blocks, and of cells.
    """
    found = plain.congestion_bounds(instance)
    return found | block_bounds(instance, max(found.values()), enough)


def block_bounds(instance: TopologyInstance, known: float, enough: float = inf) -> dict[str, float]:
    """Bytes that the busiest link carries in any design, at least ``known``; none where there are no groups.

    ``blocks``
        A server has a whole number of links into its block, and what finds no place on them crosses the links between
        blocks twice: :mod:`~ddlopt.frontier.topology.blocks.block_bound`.
    ``cells``
        Links out of a block, a whole number of them, leave pairs inside without one, whose traffic takes two hops:
        :mod:`~ddlopt.frontier.topology.blocks.cell_bound`.
    """
    if not instance.allreduce_groups or known >= enough:
        return {}
    capacity, traffic = plain.directions_of_links(instance), instance.traffic_bytes
    duplex = instance.optics == "duplex"
    levels = list(level_sizes(instance.servers - 1, instance.degree, duplex))
    sizes = plain.sizes_of(instance)
    hops = float(sizes.all_reduce.sum() + sizes.idle)
    under_way = max(sum(bytes_under_way(view, levels)) for view in views_of(traffic, duplex))
    blocks = block_bound(instance, hops + under_way, capacity, known)
    cells = blocks
    for view in views_of(traffic, duplex=False) if blocks < enough else ():
        stages = bytes_under_way(view, levels)
        cells = cell_bound(instance, view, hops + stages[0] + sum(stages[2:]), capacity, cells)
    return {"blocks": blocks, "cells": cells}


def blocks_bound(instance: TopologyInstance) -> float | None:
    """Iteration time in seconds that no design can beat, by blocks and cells; None where there are no groups."""
    found = block_bounds(instance, float(instance.node_bytes.max()) / instance.degree)
    return float(instance.iteration_time_s(max(found.values()))) if found else None
