"""Designs as tables: links and planes, rings in rank order, routes by hop."""

from collections.abc import Iterator

from ddlopt.instances.writers.layout import Section, number, path, section, size
from ddlopt.models.topology.instance import Fabric, TopologyInstance
from ddlopt.models.topology.solution import TopologyDesign


def table(instance: TopologyInstance, solution: TopologyDesign) -> Iterator[Section]:
    """Sections of a design."""
    yield links(instance, solution)
    yield from planes(solution)
    yield from rings(instance, solution)
    pairs = [
        (route.source, route.target, size(float(instance.traffic_bytes[route.source, route.target])), place, part, way)
        for route in solution.routes
        for place, (part, way) in enumerate(zip(route.fractions, route.paths, strict=True))
    ]
    yield section(
        "Routes of model-parallel traffic",
        ("from", "to", "an iteration", "path", "part", "hop by hop"),
        [
            (source, target, amount, place, number(part), path(way))
            for source, target, amount, place, part, way in pairs
        ],
    )


def links(instance: Fabric, design: TopologyDesign) -> Section:
    """How many links there are between which servers."""
    arrow = "<->" if instance.optics == "duplex" else "->"
    rows = [(f"{i} {arrow} {j}", count) for i, j, count in design.links]
    return section("Links between servers", ("servers", "links"), rows)


def planes(design: TopologyDesign) -> Iterator[Section]:
    """What each optical plane joins, where the design says so."""
    if design.planes:
        rows = [(place, ", ".join(f"{i}-{j}" for i, j in plane) or "-") for place, plane in enumerate(design.planes)]
        yield section("Optical planes", ("plane", "joins"), rows)


def rings(instance: TopologyInstance, design: TopologyDesign) -> Iterator[Section]:
    """Order of ranks on each ring, and the paths from each to the next."""
    groups = instance.allreduce_groups
    ordered = [
        (
            place,
            ring.group,
            size(ring.share * groups[ring.group].gradient_bytes),
            number(ring.share),
            path(ring.members),
        )
        for place, ring in enumerate(design.rings)
    ]
    if ordered:
        yield section("Rings, servers in rank order", ("ring", "group", "gradient", "share", "ranks"), ordered)
        hops = [
            (place, rank, way[0], way[-1], path(way))
            for place, ring in enumerate(design.rings)
            for rank, way in enumerate(ring.paths)
        ]
        yield section("Hops of rings", ("ring", "rank", "from", "to", "hop by hop"), hops)
