"""Aggregation trees in a network as tables: every message hop by hop."""

from collections.abc import Iterator

from ddlopt.instances.writers.layout import Section, label, listed, name, path, section, size
from ddlopt.models.aggregation.graph.instance import AggregationTrees, GraphInstance


def table(instance: GraphInstance, solution: AggregationTrees) -> Iterator[Section]:
    """Sections of a set of trees."""
    nodes = [name(node.name) or str(place) for place, node in enumerate(instance.nodes)]
    jobs, routes = [], []
    for place, (job, tree) in enumerate(zip(instance.jobs, solution.trees, strict=True)):
        adding = sorted({route[-1] for route in tree} - {job.server})
        called = label(place, job.name)
        jobs.append((called, nodes[job.server], size(job.gradient_bytes), listed(nodes[node] for node in adding)))
        for route in tree:
            kind = "worker" if route[0] in job.workers else "sum"
            routes.append((called, kind, nodes[route[0]], nodes[route[-1]], path(nodes[node] for node in route)))
    yield section("Jobs", ("job", "server", "gradient", "nodes that add up"), jobs)
    yield section("Messages", ("job", "what", "from", "to", "hop by hop"), routes)
