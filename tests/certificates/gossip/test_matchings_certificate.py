"""Proofs for plans of matchings: regions lose no plan, and leaves prove what holds in them."""

import itertools
import json
import random
from fractions import Fraction

import networkx as nx
import numpy as np
import pytest

import ddlopt
from ddlopt.certificates.gossip.matchings import MatchingsCertificate
from ddlopt.certificates.gossip.matchings.leaf import FLOW_BITS, PRICE_BITS, is_semidefinite, leaf_bound
from ddlopt.certificates.gossip.matchings.regions import Regions
from ddlopt.certificates.gossip.matchings.tree import POINT_BITS, children_of, edges_moved, is_image, orbits_of
from ddlopt.models.errors import RefutedError, SolutionError
from ddlopt.models.gossip.matchings.evaluate import evaluate_matchings
from ddlopt.models.gossip.matchings.instance import MatchingPlan, MatchingsInstance
from ddlopt.models.gossip.network import Network
from ddlopt.models.gossip.weights.automorphisms import automorphisms
from ddlopt.solvers import proofs

KINDS = ("given", "levels", "times", "single", "given single")


def coloured(rng, edges):
    """Matchings by first fit, in an order at random: no edge could be in an earlier one."""
    found: list[list[int]] = []
    for edge in rng.sample(range(len(edges)), len(edges)):
        for own in found:
            if not any({*edges[edge]} & {*edges[other]} for other in own):
                own.append(edge)
                break
        else:
            found.append([edge])
    return found


def drawn(rng, kind):
    n = rng.randrange(2, 6)
    edges = [(i, j) for i in range(n) for j in range(i + 1, n) if j == i + 1 or rng.random() < 0.5]
    more = {"matchings": coloured(rng, edges)} if "given" in kind else {}
    if kind == "times":
        more["times"] = tuple(rng.choice((1.0, 2.0, 0.7)) for _ in edges)
        if rng.random() < 0.5:
            more["edge_budgets"] = tuple(rng.choice((1.0, 0.4)) for _ in edges)
    single = "single" if "single" in kind else "independent"
    budget = rng.choice((0.4, 0.75, 1.0, 1.5, 2.5))
    network = Network(nodes=n, edges=edges)
    return MatchingsInstance(name="drawn", network=network, budget=budget, activation=single, **more)


def plan_of(rng, instance):
    """Matchings, the likeliest first, and feasible probabilities."""
    matchings = [list(own) for own in instance.matchings] or coloured(rng, instance.network.edges)
    budgets = instance.edge_budgets or (1.0,) * len(instance.network.edges)
    chances = sorted((Fraction(rng.randrange(0, 65), 64) for _ in matchings), reverse=True)
    chances = [min(c, *(Fraction(budgets[e]) for e in own)) for c, own in zip(chances, matchings, strict=True)]
    times = [max(Fraction(instance.edge_times[e]) for e in own) for own in matchings]
    spent = sum(c * t for c, t in zip(chances, times, strict=True)) / Fraction(instance.budget)
    if instance.activation == "single":
        spent = max(spent, sum(chances))
    shrunk = Fraction(1) if spent <= 1 else 1 / spent
    return matchings, [Fraction(float(c * shrunk * (1 - Fraction(1, 2**40)))) for c in chances]


def variables_of(regions, region, matchings, chances):
    """The probabilities of a region's variables; None if the plan is not in it."""
    where = {edge: j for j, own in enumerate(matchings) for edge in own}
    chance = [chances[where[edge]] for edge in range(len(where))]
    values: list[Fraction] = [Fraction(0)] * len(region.low)
    if regions.leveled:
        for edge, level in enumerate(region.level):
            if where[edge] != level if region.decided[edge] else where[edge] < level:
                return None
        values[: len(chances)] = chances[: len(values)]
        values += [chance[edge] for edge, decided in enumerate(region.decided) if not decided]
    else:
        for edge, owner in enumerate(region.level):
            values[owner] = chance[edge]
    box = zip(region.low, values, region.high, strict=False)
    return values if all(low <= value <= high for low, value, high in box) else None


def node_for(rng, regions, region, orbits):
    """A way to divide a region; None if none was hit."""
    free = [edge for edge, decided in enumerate(region.decided) if not decided]
    kind = rng.choice(("orbit", "edge", "split"))
    node = ["split", rng.randrange(len(region.low)), rng.randrange(2**POINT_BITS)]
    if kind != "split" and free:
        node = [kind, rng.choice(free)]
    try:
        children_of(regions, region, orbits, node)
    except RefutedError:
        return None
    return node


def images(plan, instance, group):
    """The plan as each automorphism has it."""
    matchings, chances = plan
    place = {frozenset(ends): edge for edge, ends in enumerate(instance.network.edges)}
    for image in group:
        moved = [place[frozenset(image[node] for node in ends)] for ends in instance.network.edges]
        yield [[moved[edge] for edge in own] for own in matchings], chances


@pytest.mark.parametrize("kind", KINDS)
def test_no_division_loses_a_plan_and_leaves_hold(kind):
    """Wherever a tree at random leads, an image of the plan is there, keeps the rows, and is not below the bound."""
    rng, told, rows = random.Random(kind), 0, 0
    for _ in range(60):
        instance = drawn(rng, kind)
        regions, plan = Regions(instance), plan_of(rng, instance)
        symmetries = automorphisms(instance.network).generators if regions.leveled else ()
        symmetries = tuple(tuple(each.tolist()) for each in symmetries)
        group = list(symmetric(instance)) if regions.leveled else [tuple(range(instance.size))]
        orbits, region = orbits_of(regions, symmetries), regions.root
        for _ in range(rng.randrange(6)):
            node = node_for(rng, regions, region, orbits)
            if node is None:
                continue
            parts = [each for each in children_of(regions, region, orbits, node) if each is not None]
            there = [
                (part, other)
                for part in parts
                for other in images(plan, instance, group if node[0] == "orbit" else group[:1])
                if variables_of(regions, part, *other) is not None
            ]
            assert there, (instance.to_json(), plan, node)
            region, plan = rng.choice(there)
        polytope = regions.polytope(region)
        values = variables_of(regions, region, *plan)
        assert values is not None
        box = zip(polytope.low, values, polytope.high, strict=True)
        assert all(low <= value <= high for low, value, high in box)
        for entries, limit in polytope.rows:
            assert sum(entry * values[variable] for variable, entry in entries.items()) <= limit
            rows += 1
        told += leaf_holds(rng, regions, polytope, plan)
    assert rows >= 60
    assert told > 8


def symmetric(instance):
    """All automorphisms, the identity first."""
    pairs = {frozenset(ends) for ends in instance.network.edges}
    for image in itertools.permutations(range(instance.size)):
        if all(frozenset((image[i], image[j])) in pairs for i, j in instance.network.edges):
            yield image


def test_plans_of_a_region_are_in_its_image():
    """Wherever two trees at random lead: what the checker calls an image has the moved plan; all plans are asked."""
    rng, told = random.Random(7), {True: 0, False: 0}
    for _ in range(120):
        instance = drawn(rng, "levels")
        regions, plan = Regions(instance), plan_of(rng, instance)
        found = []
        for _ in range(2):
            region = regions.root
            for _ in range(rng.randrange(1, 5)):
                node = node_for(rng, regions, region, orbits_of(regions, ()))
                parts = children_of(regions, region, orbits_of(regions, ()), node) if node else ()
                region = rng.choice([each for each in parts if each is not None] or [region])
            found.append(region)
        for image in symmetric(instance):
            moved = edges_moved(regions, image)
            inside = is_image(*found, moved)
            told[inside] += 1
            for other in images(plan, instance, symmetric(instance)) if inside else ():
                if variables_of(regions, found[0], *other) is not None:
                    (there,) = images(other, instance, [image])
                    assert variables_of(regions, found[1], *there) is not None
    assert min(told.values()) > 50


def leaf_holds(rng, regions, polytope, plan):
    """Whether vectors at random, which prove no more than what a plan has, prove anything."""
    instance, (matchings, chances) = regions.instance, plan
    n, edges = instance.size, len(regions.edges)
    weights = [rng.choice((0.5, 0.3, rng.uniform(-0.1, 1.0))) for _ in range(edges)]
    answer = MatchingPlan(
        instance="drawn", matchings=matchings, probabilities=tuple(map(float, chances)), weights=weights
    )
    found = evaluate_matchings(instance, answer, exact=True)
    assert found.feasible
    vectors = [[rng.randrange(-9, 10) for _ in range(n)] for _ in range(rng.randrange(1, n + 1))]
    where = {edge: j for j, own in enumerate(matchings) for edge in own}
    near = [chances[where[e]] * Fraction(weights[e]) * rng.choice((0, 1, 1, 2)) for e in range(edges)]
    flows = [] if regions.single else [int(y * 2**FLOW_BITS) for y in near]
    prices = [rng.choice((0, 0, rng.randrange(2**PRICE_BITS))) for _ in polytope.rows]
    lent = () if regions.single or rng.random() < 0.3 else loan(rng, regions, vectors)
    try:
        bound = leaf_bound(regions, polytope, vectors, flows, prices, lent)
    except RefutedError:
        return False  # multiples of the all-one vector, or too large a loan
    assert bound is not None
    assert bound <= found.objective, (instance.to_json(), plan)
    return bound > 0


def loan(rng, regions, vectors):
    """As much of the diagonal of the square of the mean as it has at times, and at times what the variance has."""
    own = [2 * sum((v[i] - v[j]) ** 2 for v in vectors) for i, j in regions.edges]
    parts = [Fraction(rng.choice((-1, 0, 1, 1, 2, 4)), 16) for _ in own]
    return [int(part * each) for part, each in zip(parts, own, strict=True)]


def test_loans_are_decided_as_by_eigenvalues():
    rng, told = random.Random(1), set()
    for _ in range(300):
        size = rng.randrange(1, 6)
        columns = rng.randrange(1, 6)
        half = np.array([[rng.randrange(-3, 4) for _ in range(columns)] for _ in range(size)])
        form = half @ half.T - np.diag([rng.choice((0, 0, 0, 1)) for _ in range(size)])
        least = np.linalg.eigvalsh(form)[0]
        semidefinite = is_semidefinite(form.tolist())
        if abs(least) > 1e-9:
            assert semidefinite == (least > 0)
        else:
            assert semidefinite  # a form of whole numbers is singular, or its least eigenvalue is not as small
        told.add((semidefinite, abs(least) > 1e-9))
    assert told == {(True, True), (False, True), (True, False)}


def test_a_loan_proves_what_the_variance_alone_does_not():
    """On a ring of four the square of the mean lends all that it has, and the leaf of all plans proves 1/2, not 0."""
    ring = MatchingsInstance(name="ring", network=Network(nodes=4, edges=[(0, 1), (1, 2), (2, 3), (0, 3)]), budget=1.0)
    regions = Regions(ring)
    vectors = [[1, 1, -1, -1], [1, -1, -1, 1]]
    polytope = regions.polytope(regions.root)
    flows, prices = [2 ** (FLOW_BITS - 2)] * 4, [0] * len(polytope.rows)
    plain = max(leaf_bound(regions, polytope, vectors, flows, [*prices[:-1], price << 20]) for price in range(16))
    best = max(
        leaf_bound(regions, polytope, vectors, flows, [*prices[:-1], price << 20], [lent] * 4)
        for lent in (2, 4, 6, 8)
        for price in range(16)
    )
    assert plain == 0
    assert best == Fraction(1, 2)
    with pytest.raises(RefutedError, match="more than the square"):
        leaf_bound(regions, polytope, vectors, flows, prices, [9] * 4)
    with pytest.raises(RefutedError, match="more than the variance"):
        leaf_bound(regions, polytope, vectors, flows, prices, [-1] * 4)
    with pytest.raises(RefutedError, match="lends for 3 edges"):
        leaf_bound(regions, polytope, vectors, flows, prices, [1] * 3)


@pytest.mark.parametrize(
    ("graph", "more"),
    [
        pytest.param(nx.cycle_graph(5), {"budget": 1.0}, marks=pytest.mark.slow),
        pytest.param(nx.path_graph(4), {"budget": 0.5}, marks=pytest.mark.slow),
        (nx.cycle_graph(4), {"budget": 1.0, "times": (1.0, 2.0, 1.0, 2.0), "matchings": ((0, 3), (1, 2))}),
        (nx.star_graph(3), {"budget": 1.0, "activation": "single"}),
    ],
)
def test_small_graphs_are_proven(graph, more):
    network = Network(nodes=len(graph), edges=sorted(tuple(sorted(edge)) for edge in graph.edges))
    instance = MatchingsInstance(name="small", network=network, **more)
    result, certificate = ddlopt.certify(instance, time_limit=60)
    assert (str(result.status), str(result.evidence)) == ("optimal", "certificate")
    assert isinstance(certificate, MatchingsCertificate)
    exact = ddlopt.check(instance, result.solution, exact=True).objective
    assert 0 <= exact - ddlopt.check_certificate(instance, certificate).bound <= Fraction(1, 10**4) * exact


PAIR = MatchingsInstance(name="pair", network=Network(nodes=2, edges=[(0, 1)]), budget=0.5)
LEAF = ["leaf", [[1, -1]], [2 ** (FLOW_BITS - 2)], [0, 0]]
GOOD = MatchingsCertificate("pair", PAIR.digest, Fraction(1, 2), (), (["edge", 0], LEAF))
"""Half of the time the only edge averages: ρ = 1/2, at y = 1/4. The second child of the tree is empty."""
ALONE = MatchingsInstance(name="alone", network=PAIR.network, budget=0.5, activation="single", matchings=((0,),))


def test_a_proof_by_hand():
    assert proofs.check(PAIR, GOOD).bound == Fraction(1, 2)
    leaf = ["leaf", [[1, -1]], [], [0, 0]]
    assert proofs.check(ALONE, MatchingsCertificate("a", ALONE.digest, Fraction(1, 2), (), (leaf,))).nodes == 1


@pytest.mark.parametrize(
    ("changed", "line"),
    [
        ({"claim": "501/1000"}, "a leaf proves 0.5, not 0.501"),
        ({"claim": "2"}, "a factor of 1 is always possible"),
        ({"nodes": []}, "the tree ends before its last leaf"),
        ({"nodes": [["edge", 0]]}, "the tree ends before its last leaf"),
        ({"nodes": [["edge", 0], LEAF, LEAF]}, "nodes after its last leaf"),
        ({"nodes": [["edge", 1], LEAF]}, "no edge 1"),
        ({"nodes": [["edge", -1], LEAF]}, "no edge -1"),
        ({"nodes": [["edge", 0], ["edge", 0], LEAF]}, "no edge 0"),
        ({"nodes": [["edge", 0], ["split", 1, 9], LEAF]}, "divides nothing"),
        ({"nodes": [["edge", 0], ["split", -1, 9], LEAF]}, "divides nothing"),
        ({"nodes": [["edge", 0], ["split", 0, 0], LEAF]}, "divides nothing"),
        ({"nodes": [["edge", 0], ["split", 0, 2 ** (POINT_BITS - 1)], LEAF]}, "divides nothing"),
        ({"nodes": [["edge", 0], ["orbit", 0], LEAF]}, "no edge 0"),
        ({"nodes": [["edge", 0], ["leaf", [], [], [0, 0]]]}, "do not show that its region is empty"),
        ({"nodes": [["edge", 0], ["leaf", [[1, 1]], [0], [0, 0]]]}, "multiples of the all-one vector"),
        ({"nodes": [["edge", 0], ["leaf", [[1, -1, 0]], [0], [0, 0]]]}, "have not 2 entries each"),
        ({"nodes": [["edge", 0], ["leaf", [[1, -1]] * 3, [0], [0, 0]]]}, "more than 2"),
        ({"nodes": [["edge", 0], ["leaf", [[1, -1]], [], [0, 0]]]}, "0 flows"),
        ({"nodes": [["edge", 0], ["leaf", [[1, -1]], [1], [0]]]}, "are not 2 numbers of 0 or more"),
        ({"nodes": [["edge", 0], ["leaf", [[1, -1]], [1], [0, -1]]]}, "are not 2 numbers of 0 or more"),
        ({"symmetries": [[1]]}, "no permutation"),
        ({"symmetries": [[1, 1]]}, "no permutation"),
        ({"symmetries": [[-1, 0]]}, "no permutation"),
    ],
)
def test_what_proves_nothing(changed, line):
    with pytest.raises(RefutedError, match=line):
        proofs.check(PAIR, MatchingsCertificate.from_data(json.loads(GOOD.text) | changed))


def test_symmetries_are_automorphisms_that_are_of_use():
    path = MatchingsInstance(name="path", network=Network(nodes=3, edges=[(0, 1), (1, 2)]), budget=1.0)
    with pytest.raises(RefutedError, match="to what is no edge"):
        orbits_of(Regions(path), [(1, 0, 2)])
    assert orbits_of(Regions(path), [(2, 1, 0)]) == (frozenset((0, 1)),) * 2
    with pytest.raises(RefutedError, match="of use"):
        orbits_of(Regions(ALONE), [(1, 0)])
    regions = Regions(path)
    orbits = orbits_of(regions, [(2, 1, 0)])
    beyond = regions.split(regions.root, 0, Fraction(3, 4))[0]
    assert beyond is not None
    with pytest.raises(RefutedError, match="not the same for all edges"):
        children_of(regions, beyond, orbits, ["orbit", 0])


@pytest.mark.parametrize(
    "changed",
    [
        {"version": 2},
        {"claim": "1/0"},
        {"symmetries": {}},
        {"symmetries": [[0.0, 1]]},
        {"nodes": {}},
        {"nodes": [[]]},
        {"nodes": ["leaf"]},
        {"nodes": [[["edge"], 0]]},
        {"nodes": [["edge"]]},
        {"nodes": [["edge", True]]},
        {"nodes": [["split", 0]]},
        {"nodes": [["split", 0, 0.5]]},
        {"nodes": [["orbit", "0"]]},
        {"nodes": [["image", 0]]},
        {"nodes": [["image", 0, 1]]},
        {"nodes": [["image", 0.0, [1, 0]]]},
        {"nodes": [["image", [0], [1, 0]]]},
        {"nodes": [["leaf", [], []]]},
        {"nodes": [["leaf", [[2**256, 0]], [0], [0, 0]]]},
        {"nodes": [["leaf", [0], [0], [0, 0]]]},
        {"nodes": [["leaf", [[1, 0]], None, [0, 0]]]},
        {"nodes": [["leaf", [[1, 0]], [0], [0, 0], 1]]},
        {"nodes": [["leaf", [[1, 0]], [0], [0, 0], [0.5]]]},
        {"nodes": [["leaf", [[1, 0]], [0], [0, 0], [0], [0]]]},
        {"more": 1},
    ],
)
def test_odd_files_are_refused(changed, tmp_path):
    file = tmp_path / "proof.json"
    file.write_text(json.dumps(json.loads(GOOD.text) | changed))
    with pytest.raises(SolutionError) as refused:
        ddlopt.check_certificate(PAIR, file)
    assert "\n" not in str(refused.value)
