"""Small instances of gossip to begin with."""

import random

from ddlopt.instances.generators import generate
from ddlopt.instances.odd.optional import PLAIN, RARE, some
from ddlopt.models.contracts import Instance
from ddlopt.models.gossip import ExchangeInstance, MatchingsInstance, WeightsInstance


def _shape(draw: random.Random) -> str:
    return draw.choice(("path", "cycle", "star", "complete", "random"))


def weights(draw: random.Random, seed: int) -> Instance:
    """Networks of few nodes, for every goal."""
    goal = draw.choice(("averaging", "chain", "process", "pairwise"))
    instance = generate("gossip", "weights", seed, shape=_shape(draw), nodes=draw.randint(3, 6), degree=2, goal=goal)
    assert isinstance(instance, WeightsInstance)
    edges = len(instance.network.edges)
    return instance.changed(costs=some(draw, edges, 1.0, 2.0, 0.5) if goal == "process" else ())


def matchings(draw: random.Random, seed: int) -> Instance:
    """Few edges; now and then with times, budgets and matchings of their own."""
    instance = generate(
        "gossip",
        "matchings",
        seed,
        shape=_shape(draw),
        nodes=draw.randint(3, 6),
        degree=2,
        share=draw.choice((0.3, 0.6)),
        activation=draw.choice(("independent", "single")),
    )
    assert isinstance(instance, MatchingsInstance)
    edges = len(instance.network.edges)
    alone = () if draw.random() < PLAIN else tuple((edge,) for edge in range(edges))
    times, budgets = some(draw, edges, 1.0, 2.0, 0.5), some(draw, edges, 1.0, 0.5)
    return instance.changed(times=times, edge_budgets=budgets, matchings=alone)


def period(draw: random.Random, seed: int) -> Instance:
    """Workers that may be uneven or slow, and rounds of a network."""
    slow = {"slow_chance": 0.2, "slowdown": 3.0, "whole": True} if draw.random() < RARE else {}
    return generate(
        "gossip",
        "period",
        seed,
        workers=draw.randint(2, 6),
        ratio=draw.choice((0.5, 4.0)),
        step_size=draw.choice((None, 0.01)),
        shape=draw.choice((None, _shape(draw))),
        degree=2,
        spread=draw.choice((None, None, 0.5)),
        **{"whole": draw.random() < PLAIN} | slow,
    )


def exchange(draw: random.Random, seed: int) -> Instance:
    """Few steps, with a number of sends or a price."""
    more = draw.choice(({"sends": draw.randint(0, 4)}, {"send_cost": draw.choice((0.5, 5.0))}))
    instance = generate("gossip", "exchange-drift", seed, steps=draw.randint(2, 10), width=2, **more)
    assert isinstance(instance, ExchangeInstance)
    blocks = () if draw.random() < PLAIN else draw.choice(((1, 1), (2,)))
    return instance.changed(blocks=blocks, rates=some(draw, instance.size, 0.1, 0.2, 0.05))


def circulant(draw: random.Random, seed: int) -> Instance:
    """Few nodes."""
    nodes = draw.randint(3, 14)
    goal = draw.choice(("gap", "averaging"))
    return generate("gossip", "circulant", seed, nodes=nodes, degree=draw.randint(2, max(2, nodes // 2)), goal=goal)
