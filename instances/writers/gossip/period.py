"""Periods of local steps as tables."""

from collections.abc import Iterator

from ddlopt.instances.writers.gossip.weights import edge_names
from ddlopt.instances.writers.layout import Section, section
from ddlopt.models.gossip.period.instance import PeriodInstance, PeriodPlan


def table(instance: PeriodInstance, solution: PeriodPlan) -> Iterator[Section]:
    """Sections of a plan."""
    told = [("workers", instance.workers), ("local steps between rounds", repr(solution.period))]
    yield section("Plan", ("what", "value"), [*told, ("step size", repr(solution.step_size))])
    if instance.rounds is not None:
        rounds = instance.rounds
        rows = [
            (place, repr(chance), *edge_names(rounds.network, edge))
            for place, (chance, edges) in enumerate(zip(solution.activation, rounds.matchings, strict=True))
            for edge in edges
        ]
        yield section("Matching of a round", ("matching", "probability", "one", "other"), rows)
