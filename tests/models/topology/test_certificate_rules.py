"""The rules of a certificate against all designs of tiny instances: what is struck off is in no design that is as good.

Loads are those of linear programs over all routes and rings; a design must survive every weight, however chosen, at a
bound just above its load, in every case that it belongs to.
"""

import itertools
from math import ceil

import numpy as np
import pytest
from brute_force import routed_congestion
from volume import for_each

from ddlopt.models.topology import AllReduceGroup, TopologyInstance
from ddlopt.models.topology.certificate.colouring import colourable
from ddlopt.models.topology.certificate.format import MOST_PRICE
from ddlopt.models.topology.certificate.kernels import propagate, refuted
from ddlopt.models.topology.certificate.statement import statement_of

CASES = {
    "one way": (3, 2, {}, ()),
    "one way, four": (4, 1, {}, ()),
    "no parallel links": (4, 2, {"parallel_links": False}, ()),
    "duplex": (4, 2, {"optics": "duplex"}, ()),
    "duplex, odd": (3, 2, {"optics": "duplex"}, ()),
    "duplex, no parallel links": (4, 2, {"optics": "duplex", "parallel_links": False}, ()),
    "nobody forwards": (3, 2, {"host_forwarding": False}, ()),
    "nobody forwards, duplex": (4, 3, {"host_forwarding": False, "optics": "duplex"}, ()),
    "ring": (4, 2, {"parallel_links": False}, (((0, 1, 2, 3), 9.0), ((1, 3), 4.0))),
    "rings": (3, 2, {}, (((0, 1, 2), 9.0), ((0, 1, 2), 5.0))),
    "ring, duplex": (4, 2, {"optics": "duplex"}, (((0, 1, 2), 9.0),)),
    "ring, nobody forwards": (3, 2, {"host_forwarding": False}, (((0, 1, 2), 9.0),)),
}
EXPONENT = -14


def instance_of(case, rng):
    n, degree, options, groups = CASES[case]
    traffic = np.round(rng.gamma(2.0, 3.0, (n, n))) * (rng.random((n, n)) < 0.7) * (~np.eye(n, dtype=bool))
    traffic[0, 1] += 1.0
    groups = tuple(AllReduceGroup(members=members, gradient_bytes=size) for members, size in groups)
    return TopologyInstance(
        name=case,
        servers=n,
        degree=degree,
        link_bandwidth_bytes_per_s=1.0,
        traffic_bytes=traffic,
        allreduce_groups=groups,
        **options,
    )


def designs(instance, statement):
    """Every design as the number of each server's set, with its load; those that cannot serve all are left out."""
    n, duplex = instance.servers, statement.duplex
    for chosen in itertools.product(range(statement.sets.shape[1]), repeat=n):
        links = statement.links_in[range(n), chosen].astype(int)
        if links.sum(axis=0).max() > instance.degree or (duplex and (links != links.T).any()):
            continue
        pairs = [(s, v) for s in range(n) for v in range(s) for _ in range(links[s, v])]
        if duplex and not colourable(pairs, instance.degree):
            continue
        load = routed_congestion(instance, {(s, v): int(links[s, v]) for s, v in np.argwhere(links).tolist()})
        if np.isfinite(load):
            yield np.array(chosen), load


def weights(statement, rng):
    """Lengths and prices within the rules: small, equal, large, or of one kind of arcs only."""
    n = len(statement.sets)
    most = int(rng.choice([1, 2, 5, 4096, 65535]))
    lengths = rng.integers(0, most + 1, n * n) if rng.random() < 0.8 else np.full(n * n, most)
    lengths[rng.random(n * n) < rng.choice([0.0, 0.3, 0.7])] = 0
    scale = int(rng.choice([0, 1, most * 2**16, most * 2**22, MOST_PRICE]))
    prices = rng.integers(-scale, scale + 1, (n, n) if statement.duplex else n)
    if statement.duplex:
        prices = np.triu(prices, 1) - np.triu(prices, 1).T
    elif not statement.filled:
        prices = abs(prices)
    tax = rng.integers(0, scale + 1) if rng.random() < 0.5 else 0
    return lengths.astype(np.uint16), np.append(prices.ravel(), tax).astype(np.int64)


def struck_off(case, seed, rounds):
    """Try that many weights; how many sets they struck off, and cases they refuted."""
    rng = np.random.default_rng(seed)
    instance = instance_of(case, rng)
    statement = statement_of(instance, EXPONENT)
    n, many, d = statement.sets.shape
    known = list(designs(instance, statement))
    if not known:
        return 0
    loads = np.array([load for _, load in known])
    servers, struck = np.arange(n), 0
    for _ in range(rounds):
        z = ceil(rng.choice(loads) * (1 + 1e-9) / 2.0**EXPONENT) + 1
        good = [chosen for chosen, load in known if load <= z * 2.0**EXPONENT * (1 - 1e-9)]
        # A case to which a good design belongs, for some servers what it has; sets of others are struck off by chance.
        kept = good[rng.integers(len(good))]
        allowed = rng.random((n, many)) < rng.choice([0.3, 0.8, 1.0])
        decided = rng.random(n) < rng.choice([0.0, 0.4, 1.0])
        allowed[decided] = False
        allowed[servers, kept] = True
        inside = [chosen for chosen in good if allowed[servers, chosen].all()]
        figures = np.array([z, statement.most_links, statement.forwarding, statement.duplex], dtype=np.int64)
        for _ in range(4):
            before = allowed.sum()
            assert propagate(allowed, statement.links_in, d, statement.duplex)
            lengths, prices = weights(statement, rng)
            assert not refuted(
                statement.demand, statement.joined, statement.member, statement.hop, statement.sets, figures, allowed,
                lengths, prices,
            )  # fmt: skip
            struck += before - allowed.sum()
            for chosen in inside:
                assert allowed[servers, chosen].all()
    return struck


@pytest.mark.parametrize("case", [case for case in CASES if CASES[case][0] == 3])
def test_what_is_struck_off_is_in_no_good_design(case):
    assert struck_off(case, 0, 60) > 0


@pytest.mark.slow
@for_each("case", CASES)
def test_what_is_struck_off_is_in_no_good_design_of_several_instances(case):
    assert sum(struck_off(case, seed, 1000) for seed in range(1, 5)) > 100
