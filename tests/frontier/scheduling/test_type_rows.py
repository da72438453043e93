"""Capacities of sets of types: what they let pass has places, and nothing else has."""

import itertools

import numpy as np
import pytest
from scheduling_brute_force import random_instance
from volume import for_each, seeds

from ddlopt import instances
from ddlopt.frontier.scheduling.type_rows import TypeRows
from ddlopt.models.errors import SolverError
from ddlopt.models.scheduling import SchedulingInstance, ServerGroup

ORDERS = (("a", "b", "c"), ("a", "c", "b"), ("c", "a", "b"))
"""Of types by speed; with all of them classes do not hold each other."""


def drawn(rng, orders, mixed=True):
    """Three servers of a type each, and jobs that have them in some order."""
    plain = random_instance(rng, jobs=3, places=(1,), arrivals=False)
    jobs = tuple(
        job.model_copy(
            update={
                "speeds": {} if order is None else dict(zip(order, (1.0, 0.5, 0.25), strict=True)),
                "max_workers": 4,
            }
        )
        for job, order in zip(plain.jobs, orders, strict=True)
    )
    servers = tuple(
        ServerGroup(count=2 if name == "b" else 1, capacity={"gpu": int(rng.integers(3, 5)), "cpu": 99}, type=name)
        for name in "abc"
    )
    return made_of(plain, jobs=jobs, servers=servers, mixed_types=mixed, energy_price_per_j=0.0)


def made_of(instance, **other):
    fields = {name: getattr(instance, name) for name in SchedulingInstance.model_fields}
    return SchedulingInstance(**fields | other)


def has_places(rows, chosen):
    """Whether workers of classes can be spread over their types, by trying every way."""
    ways = []
    for job, k, width in chosen:
        types = rows.types[job][k]
        ways.append(
            [
                dict(zip(types, counts, strict=True))
                for counts in itertools.product(range(width + 1), repeat=len(types))
                if sum(counts) == width
            ]
        )
    return any(
        all(sum(each.get(kind, 0) for each in way) <= room for kind, room in enumerate(rows.rooms))
        for way in itertools.product(*ways)
    )


@for_each("seed", seeds(6, 60))
def test_what_fits_is_what_has_places(seed):
    rng = np.random.default_rng(seed)
    orders = [ORDERS[int(k)] if k < 3 else None for k in rng.integers(0, 4, 3)]
    asked = drawn(rng, orders, mixed=seed % 3 != 2)
    rows = TypeRows.of(asked)
    assert isinstance(rows, TypeRows)
    seen = set()
    names = tuple(asked.accelerators.names)
    options = [[(job, k, width) for k in range(len(rows.types[job])) for width in (1, 3)] for job in range(3)]
    for chosen in itertools.product(*options):
        used = np.sum([rows.weights(*one) for one in chosen], axis=0)
        fits = bool((used <= np.array(rows.capacity)).all())
        seen.add(fits)
        assert fits == has_places(rows, chosen)
        if not fits:
            with pytest.raises(SolverError, match="do not fit"):
                rows.places(asked, chosen)
            continue
        placed = rows.places(asked, chosen)
        for job, k, width in chosen:
            assert sum(count for _, count in placed[job]) == width
            types = {asked.accelerators.type_of(server) for server, _ in placed[job]}
            assert types <= {names[kind] for kind in rows.types[job][k]}
        for server in range(asked.server_count):
            assert sum(dict(workers).get(server, 0) for workers in placed.values()) <= asked.capacity[server].min()
    assert True in seen


def test_there_are_as_many_rows_as_nested_classes():
    asked = instances.load("scheduling/types-j20-t20-g16")
    rows = TypeRows.of(asked)
    assert rows.capacity == (6, 11, 16)
    assert len(rows.places(asked, [(0, 0, 4), (1, 1, 4)])) == 2
    with pytest.raises(SolverError, match="do not fit"):
        rows.places(asked, [(0, 0, 4), (1, 0, 4)])


def test_refusals_are_a_line():
    asked = instances.load("scheduling/types-j20-t20-g16")
    jobs = (asked.jobs[0].model_copy(update={"demand": {"gpu": 2.0}}), *asked.jobs[1:])
    assert "all take the same" in TypeRows.of(made_of(asked, jobs=jobs))
    servers = tuple(each.model_copy(update={"capacity": {"gpu": 60.0}}) for each in asked.servers)
    assert "states" in TypeRows.of(made_of(asked, servers=servers))
