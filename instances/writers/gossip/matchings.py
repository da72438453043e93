"""Plans of matchings as tables: what is active how often, and links with their weights."""

from collections.abc import Iterator

from ddlopt.instances.writers.gossip.weights import edge_names
from ddlopt.instances.writers.layout import Section, section
from ddlopt.models.gossip.matchings.instance import MatchingPlan, MatchingsInstance


def table(instance: MatchingsInstance, solution: MatchingPlan) -> Iterator[Section]:
    """Sections of a plan."""
    rows, links = [], []
    for place, (edges, chance) in enumerate(zip(solution.matchings, solution.probabilities, strict=True)):
        lasts = max((instance.edge_times[edge] for edge in edges), default=0.0)
        rows.append((place, repr(chance), len(edges), f"{lasts:.6g}"))
        links += [(place, *edge_names(instance.network, edge), repr(solution.weights[edge])) for edge in edges]
    yield section("Matchings", ("matching", "probability", "links", "time"), rows)
    yield section("Links by matching", ("matching", "one", "other", "weight"), links)
