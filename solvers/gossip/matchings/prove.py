"""Writes proofs for plans of matchings: a tree of regions, with the multipliers of convex problems as whole numbers."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from scipy import sparse
from scipy.optimize import linprog

from ddlopt.models.errors import RefutedError
from ddlopt.models.gossip.matchings.certificate.leaf import FLOW_BITS, PRICE_BITS, Linear, leaf_bound, linear_part
from ddlopt.models.gossip.matchings.certificate.regions import Polytope, Region, Regions
from ddlopt.models.gossip.matchings.certificate.tree import POINT_BITS, MatchingsCertificate, children_of, orbits_of
from ddlopt.models.gossip.matchings.instance import MatchingPlan, MatchingsInstance
from ddlopt.models.gossip.matchings.second_moments import unit_positive
from ddlopt.models.gossip.spectral.laplacians import Floats, between, on_edges
from ddlopt.models.gossip.weights.automorphisms import automorphisms
from ddlopt.solvers.gossip.matchings.branching import Branching, Node
from ddlopt.solvers.gossip.matchings.relaxed_newton import relaxed
from ddlopt.solvers.gossip.spectral.interior_point import Block, Iterate, SpectralProgram, solve

_BITS = (9, 12, 16, 24)
"""Of the largest entry of a vector: the fewest that prove enough make the smallest file; errors count as squares."""
_LEAST = 1e-9
"""Eigenvalues below this part of the largest are left out: they are what rounding makes of 0."""
_GAP = 1e-8
"""Between primal and dual connectivity of a single matching: far below what rounding takes off a claim."""
_CLOSE = 0.05
"""Part of the way between a bound and the target: nearer, the relaxed optimum matters no more."""
_CLAIM_BITS = 50
"""After the binary point of a claim, so that it is a short fraction; it is rounded to the safe side."""


def prove(
    instance: MatchingsInstance, solution: MatchingPlan, target: Fraction, expired: Callable[[], bool]
) -> MatchingsCertificate | None:
    """The certificate that proves ``target``, or as much as it can; None where that is nothing."""
    regions = Regions(instance)
    symmetries = automorphisms(instance.network).generators if regions.leveled else ()
    found = _Proof(regions, tuple(tuple(each.tolist()) for each in symmetries), target, expired)
    found.grow()
    if found.least <= 0 < target:
        return None
    claim = Fraction(math.floor(found.least * 2**_CLAIM_BITS), 2**_CLAIM_BITS)
    claim = target if claim < target <= found.least else claim
    return MatchingsCertificate(instance.name, instance.digest, claim, found.symmetries, found.nodes)


@dataclass
class _Leaf:
    """A node of the file and what it proves; None for an empty region."""

    node: list[Any]
    bound: Fraction | None


class _Proof:
    """The nodes of a tree, and the least that its leaves prove."""

    def __init__(
        self, regions: Regions, symmetries: tuple[tuple[int, ...], ...], target: Fraction, expired: Callable[[], bool]
    ) -> None:
        self.regions, self.symmetries, self.target, self._expired = regions, symmetries, target, expired
        self.nodes: list[list[Any]] = []
        self.least = Fraction(1)
        self._branching = Branching(regions.instance)
        self._orbits = orbits_of(regions, symmetries)

    def grow(self) -> None:
        """Depth first, as the file has it; when the time is up the regions that are left become leaves."""
        waiting = [self.regions.root]
        while waiting:
            region = waiting.pop()
            leaf, node = self._explored(region)
            children = () if node is None else children_of(self.regions, region, self._orbits, node)
            self.nodes.append(leaf.node if node is None else node)
            if node is None and leaf.bound is not None:
                self.least = min(self.least, leaf.bound)
            waiting.extend(child for child in reversed(children) if child is not None)

    def _explored(self, region: Region) -> tuple[_Leaf, list[Any] | None]:
        """A leaf, and the node that should take its place; None if the leaf is good enough."""
        polytope = self.regions.polytope(region)
        if self.regions.single:
            return self._leaf(polytope, _connected(self.regions, polytope, self._expired), None), None
        arrays = [np.array(list(map(float, each))) for each in (region.low, region.high)]
        node = Node(np.array(region.level), np.array(region.decided), *arrays)
        built = self._branching.built(node)
        if built is None:
            empty = self._empty(polytope)
            if empty is not None:
                return empty, None
            return self._leaf(polytope, np.eye(self.regions.instance.size), None), self._halved(region)
        goal = float(self.target)

        def decided(factor: float, bound: float) -> bool:
            # Rounding apart.
            return factor - bound <= max(1e-9, _CLOSE * abs(goal - bound))

        at = relaxed(built.box, built.inside, decided)
        leaf = self._leaf(polytope, at.multiplier, built.box.inverses(at.point))
        if leaf.bound is None or leaf.bound >= self.target or self._expired():
            return leaf, None
        if region.alike:
            free = [edge for edge, is_decided in enumerate(region.decided) if not is_decided]
            least = min(region.level[edge] for edge in free)
            return leaf, ["orbit", next(edge for edge in free if region.level[edge] == least)]
        choice = self._branching.choice(node, built.box, at)
        if choice.edge is not None:
            return leaf, ["edge", choice.edge]
        point = round(choice.point * 2**POINT_BITS)
        if not region.low[choice.level] < Fraction(point, 2**POINT_BITS) < region.high[choice.level]:
            return leaf, self._halved(region)
        return leaf, ["split", choice.level, point]

    def _halved(self, region: Region) -> list[Any] | None:
        """The widest probability in two; None where all are too narrow."""
        widths = [most - least for least, most in zip(region.low, region.high, strict=True)]
        widest = widths.index(max(widths))
        if widths[widest] * 2**POINT_BITS < 4:
            return None
        middle = (region.low[widest] + region.high[widest]) / 2
        return ["split", widest, math.floor(middle * 2**POINT_BITS)]

    def _empty(self, polytope: Polytope) -> _Leaf | None:
        """The proof that a region has no probabilities; None where it is not found."""
        matrix, limits, bounds = _arrays(polytope)
        elastic = np.column_stack([matrix, -np.ones(len(limits))])
        cost = np.append(np.zeros(matrix.shape[1]), 1.0)
        answer = linprog(cost, A_ub=elastic, b_ub=limits, bounds=[*bounds, (0.0, None)])
        if answer.status != 0:
            return None
        prices = [round(max(0.0, price) * 2**PRICE_BITS) for price in (-answer.ineqlin.marginals).tolist()]
        try:
            bound = leaf_bound(self.regions, polytope, (), (), prices)
        except RefutedError:
            return None
        return _Leaf(["leaf", [], [], prices], bound)

    def _leaf(self, polytope: Polytope, matrix: Floats, inverses: Floats | None) -> _Leaf:
        """The best leaf of a matrix in few bits."""
        positive = unit_positive(matrix)[0]
        values, axes = np.linalg.eigh(positive)
        factors = (axes * np.sqrt(np.maximum(values, 0.0)))[:, values > _LEAST * values[-1]]
        best: _Leaf | None = None
        for bits in _BITS:
            unit = 2.0**bits / float(np.abs(factors).max())
            vectors = [list(map(int, each)) for each in np.rint(factors.T * unit).tolist() if any(np.rint(each))]
            rounded = np.array(vectors, dtype=float).T
            flows = [] if inverses is None else self._flows(rounded @ rounded.T, inverses)
            if not self.regions.single and inverses is None:
                flows = [0] * len(self.regions.edges)
            prices = _prices(polytope, *linear_part(self.regions, polytope, vectors, flows))
            bound = leaf_bound(self.regions, polytope, vectors, flows, prices)
            if best is None or best.bound is None or (bound is not None and bound > best.bound):
                best = _Leaf(["leaf", vectors, flows, prices], bound)
            if best.bound is not None and best.bound >= self.target:
                break
        assert best is not None
        return best

    def _flows(self, matrix: Floats, inverses: Floats) -> list[int]:
        """Where the quadratic of a matrix is least."""
        ends = self._branching.ends
        own = on_edges(matrix, ends)
        quadratic = between(np.eye(len(matrix)), ends) * between(matrix, ends)
        quadratic[np.diag_indices(len(own))] += 2.0 * inverses * own
        # Singular values that are rounding alone count as 0.
        found = np.linalg.lstsq(quadratic, own, rcond=1e-14)[0]
        return [round(value * 2**FLOW_BITS) for value in found.tolist()]


def _arrays(polytope: Polytope) -> tuple[Floats, Floats, list[tuple[float, float]]]:
    matrix = np.zeros((len(polytope.rows), len(polytope.low)))
    for row, (entries, _) in enumerate(polytope.rows):
        for variable, entry in entries.items():
            matrix[row, variable] = float(entry)
    limits = np.array([float(limit) for _, limit in polytope.rows])
    return matrix, limits, [(float(a), float(b)) for a, b in zip(polytope.low, polytope.high, strict=True)]


def _prices(polytope: Polytope, trace: Fraction, linear: Linear) -> list[int]:
    """Of rows, by the linear program over the polytope."""
    matrix, limits, bounds = _arrays(polytope)
    cost = np.array([float(slope / trace) for slope in linear[1]])
    answer = linprog(cost, A_ub=matrix, b_ub=limits, bounds=bounds)
    if answer.status != 0:
        return [0] * len(limits)
    return [round(max(0.0, price) * 2**PRICE_BITS) for price in (-answer.ineqlin.marginals).tolist()]


def _connected(regions: Regions, polytope: Polytope, expired: Callable[[], bool]) -> Floats:
    """The multiplier of the most connected probabilities of a polytope."""
    network, (matrix, limits, bounds) = regions.instance.network, _arrays(polytope)
    count, high = len(bounds), np.array([most for _, most in bounds])
    every = sparse.eye_array(count)
    mixing = sparse.csr_array((np.ones(len(polytope.owners)), (range(len(polytope.owners)), polytope.owners)))
    start = np.full(count, 0.5 * min(float(high.min()), 1.0 / float((matrix.sum(axis=1) / limits).max())))
    program = SpectralProgram(
        network.nodes,
        network.ends,
        mixing,
        (Block(0.0, 1.0, -1.0),),
        sparse.csr_array(sparse.vstack([every, -every, -sparse.csr_array(matrix)])),
        np.concatenate([np.zeros(count), high, limits]),
        start,
        -float(start.min()),
    )
    last = np.eye(network.nodes)

    def stop(at: Iterate) -> bool:
        nonlocal last
        last = at.multipliers[0]
        dual = high @ at.row_multipliers[count : 2 * count] + limits @ at.row_multipliers[2 * count :]
        return abs(float(dual) - at.t) <= _GAP or expired()

    solve(program, stop)
    return last
