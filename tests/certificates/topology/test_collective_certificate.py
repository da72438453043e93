"""Witnesses of bounds of collectives: against all trees and all plans known, and what is refused."""

import itertools
import random
from fractions import Fraction

import pytest
from networks_drawn import drawn, several
from refusals import one_line
from volume import for_each

import ddlopt
from ddlopt.certificates.topology.collective.certificate import CollectiveCertificate, distances, least_tree, proven_by
from ddlopt.frontier.topology.collective.prices import price_bound
from ddlopt.instances import generators
from ddlopt.models.errors import RefutedError, SolutionError
from ddlopt.models.topology.collective.bounds import exact_collective_bound
from ddlopt.solvers import proofs

COLLECTIVES = ("all-gather", "reduce-scatter", "all-reduce", "broadcast", "all-to-all")


def made(network, collective, **options):
    return generators.generate("topology", "collective", network=network, collective=collective, **options)


def trees_out_of(root, count):
    """The node before each other node, for all spanning trees."""
    others = [node for node in range(count) if node != root]
    for chosen in itertools.product(range(count), repeat=len(others)):
        before = dict(zip(others, chosen, strict=True))
        if all(reaches(before, node, root) for node in others):
            yield before


def reaches(before, node, root):
    for _ in range(len(before)):
        node = before.get(node, node)
    return node == root


@for_each("seed", range(60))
def test_a_least_tree_is_that_of_all_trees(seed):
    draw = random.Random(seed)
    count, most = draw.randrange(2, 6), draw.choice((1, 3, 100, 2**70))
    costs = [[draw.randrange(most + 1) for _ in range(count)] for _ in range(count)]
    root = draw.randrange(count)
    wanted = min(sum(costs[tail][node] for node, tail in tree.items()) for tree in trees_out_of(root, count))
    assert least_tree(costs, root) == wanted


def test_distances_are_those_of_shortest_paths():
    ends = {0: [(1, 5), (2, 1)], 2: [(1, 1), (3, 9)], 1: [(3, 1), (0, 0)]}
    assert distances(ends, 0) == {0: 0, 1: 2, 2: 1, 3: 3}
    assert distances(ends, 3) == {3: 0}


@for_each("seed", range(40))
def test_prices_prove_what_another_program_counts(seed):
    """The checker's trees and paths cost what those of column generation do, with and without switches."""
    draw = random.Random(seed)
    for collective in COLLECTIVES:
        instance = several(seed + 1, collective)[seed]
        prices = {link: Fraction(draw.choice((0, 1, 1, 2, 7))) for link in instance.bandwidth}
        if any(prices.values()):
            told = [[i, j, int(price)] for (i, j), price in prices.items() if price]
            assert proven_by(instance, [], told) == price_bound(instance, prices)


@for_each("seed", range(12))
def test_what_is_written_proves_the_plan_and_no_more(seed):
    for collective in COLLECTIVES:
        instance = drawn(seed, collective, balanced=bool(seed % 3), most=4)
        if instance is None or max(instance.bandwidth.values()) > 1e6 * min(instance.bandwidth.values()):
            continue
        plan = ddlopt.solve(instance).solution
        objective = ddlopt.check(instance, plan, exact=True).objective
        certificate, closed = proofs.prove(instance, plan, 1e-6, None, trees=False)
        assert closed
        assert isinstance(certificate, CollectiveCertificate)
        assert exact_collective_bound(instance) <= certificate.claim <= objective
        assert ddlopt.check_certificate(instance, certificate).bound == certificate.claim


@for_each("seed", range(10))
def test_no_sets_and_no_prices_prove_more_than_a_plan(seed):
    """Whatever sets and prices: what they prove is below what any plan takes."""
    draw = random.Random(seed)
    for collective in COLLECTIVES:
        instance = several(seed + 1, collective)[seed]
        objective = ddlopt.check(instance, ddlopt.solve(instance).solution, exact=True).objective
        for _ in range(20):
            nodes = [*range(instance.nodes), *range(instance.nodes)]
            draw.shuffle(nodes)
            parts = [nodes[a:b] for a, b in itertools.pairwise(sorted(draw.choices(range(len(nodes)), k=4)))]
            prices = [[i, j, draw.randrange(3)] for i, j in instance.bandwidth]
            for tried in (([part for part in parts if part], []), (parts[:1], []), ([], prices)):
                try:
                    found = proven_by(instance, *tried) if any(tried) else 0
                except RefutedError:
                    continue
                assert found <= objective


FULL = made("complete", "all-gather", accelerators=3)


@pytest.mark.parametrize(
    ("collective", "parts", "prices", "words"),
    [
        ("all-gather", [[0]], [[0, 1, 1]], "the other is not"),
        ("all-gather", [], [], "the other is not"),
        ("all-gather", [[]], [], "not empty"),
        ("all-gather", [[-1]], [], "whole numbers"),
        ("all-gather", [[True]], [], "whole numbers"),
        ("all-gather", [[0.5]], [], "whole numbers"),
        ("all-gather", 3, [], "list"),
        ("all-gather", [], [[0, 1]], "triples"),
        ("all-gather", [[3]], [], "node 3"),
        ("all-gather", [[0, 0]], [], "node 0"),
        ("all-gather", [[0, 1, 2]], [], "all of them"),
        ("all-gather", [[0], [1], [2]], [], "several sets"),
        ("all-reduce", [[0], [1]], [], "several sets"),
        ("all-reduce", [[0, 1], [1, 2]], [], "node 1"),
        ("broadcast", [[1]], [], "not the root"),
        ("all-gather", [], [[0, 0, 1]], "no link from 0 to 0"),
        ("all-gather", [], [[0, 1, 1], [0, 1, 2]], "two prices"),
        ("all-gather", [], [[0, 1, 0]], "no link has a price"),
        ("all-gather", [[0]], [], "the sets prove 1/6 s"),
        ("all-gather", [], [[0, 1, 1]], "the prices prove"),
    ],
)
def test_what_is_refused_in_one_line(collective, parts, prices, words):
    instance = made("complete", collective, accelerators=3)
    data = {
        "format": CollectiveCertificate.format, "version": 1, "instance": "x", "instance_digest": instance.digest,
        "claim": "1/2", "parts": parts, "prices": prices,
    }  # fmt: skip
    with one_line(SolutionError, words):
        ddlopt.check_certificate(instance, CollectiveCertificate.from_data(data))


@pytest.mark.parametrize(
    ("collective", "parts", "wanted"),
    [
        ("all-gather", [[0, 1, 2]], Fraction(3, 4)),
        ("all-gather", [[1, 2, 3]], Fraction(3, 4)),
        ("reduce-scatter", [[1, 2, 3]], Fraction(3, 4)),
        ("broadcast", [[0, 1]], 1),
        ("all-reduce", [[0, 1]], 1),
        ("all-reduce", [[0, 1], [2, 3]], 1),
        ("all-reduce", [[0], [1], [2], [3]], 1),
        ("all-to-all", [[0, 1]], 1),
    ],
)
def test_sets_of_a_path(collective, parts, wanted):
    """Four accelerators in a row, a byte a second in each direction; of all-reduce 6 bytes leave over 6 links."""
    assert proven_by(made("path", collective, accelerators=4, gigabytes=1), parts, []) == wanted


def test_no_more_is_accepted_than_is_proven():
    instance = made("complete", "all-gather", accelerators=3)
    for excess, refused in ((0, False), (Fraction(1, 10**30), True)):
        claim = Fraction(1, 3) + excess
        proof = CollectiveCertificate(instance.name, instance.digest, claim, [[0, 1]], [])
        if refused:
            with one_line(RefutedError, "the sets prove 1/3 s"):
                ddlopt.check_certificate(instance, proof)
        else:
            assert ddlopt.check_certificate(instance, proof).bound == claim


def test_sets_that_more_leads_into_than_out_of():
    """Out of both accelerators leads 1 to a switch, and 4 back: what has to leave them bounds."""
    links = [(0, 2, 1.0), (2, 0, 4.0), (1, 2, 1.0), (2, 1, 4.0)]
    for each in (links, [(j, i, b) for i, j, b in links]):
        data = FULL.model_copy(update={"name": "two"}).model_dump() | {
            "accelerators": 2, "switches": 1, "collective": "all-reduce", "collective_bytes": 1.0,
            "links": [{"source": i, "target": j, "bytes_per_s": b} for i, j, b in each],
        }  # fmt: skip
        assert proven_by(type(FULL).model_validate(data), [[0], [1]], []) == 1


def test_bandwidth_that_differs_by_direction_counts_as_it_does():
    """Out of accelerator 0 leads 1, into it 4: gathers are bound by the one, scatters by the other."""
    links = [(0, 1, 1.0), (1, 0, 4.0)]
    for collective, wanted in (("all-gather", 1), ("reduce-scatter", Fraction(1, 4)), ("all-reduce", 2)):
        data = FULL.model_copy(update={"name": "two"}).model_dump() | {
            "accelerators": 2, "collective": collective, "collective_bytes": 2.0,
            "links": [{"source": i, "target": j, "bytes_per_s": b} for i, j, b in links],
        }  # fmt: skip
        assert proven_by(type(FULL).model_validate(data), [[0]], []) == wanted
