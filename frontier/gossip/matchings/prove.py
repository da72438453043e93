"""Writes proofs for plans of matchings: a tree of regions, with the multipliers of convex problems as whole numbers."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from scipy.linalg import eigh
from scipy.optimize import linprog

from ddlopt.certificates.gossip.matchings.leaf import (
    FLOW_BITS,
    PRICE_BITS,
    Linear,
    is_lendable,
    leaf_bound,
    linear_part,
)
from ddlopt.certificates.gossip.matchings.regions import Polytope, Region, Regions
from ddlopt.certificates.gossip.matchings.tree import POINT_BITS, MatchingsCertificate, children_of, orbits_of
from ddlopt.frontier.gossip.matchings.branching import Branching, Node
from ddlopt.frontier.gossip.matchings.connected import Connected, connected
from ddlopt.frontier.gossip.matchings.images import Form, Images
from ddlopt.frontier.gossip.matchings.lifted import program_for
from ddlopt.frontier.gossip.matchings.lifted_moments import Lent, loan_of
from ddlopt.frontier.gossip.matchings.relaxed_newton import Relaxed, relaxed
from ddlopt.models.errors import RefutedError
from ddlopt.models.gossip.matchings.instance import MatchingPlan, MatchingsInstance
from ddlopt.models.gossip.matchings.relaxed_moments import RelaxedMoment
from ddlopt.models.gossip.matchings.second_moments import unit_positive
from ddlopt.models.gossip.spectral.laplacians import Floats, between, on_edges
from ddlopt.models.gossip.weights.automorphisms import automorphisms
from ddlopt.models.tolerances import ROUNDING

_BITS = (9, 12, 16, 24)
"""Of the largest entry of a vector: the fewest that prove enough make the smallest file; errors count as squares."""
_LEAST = 1e-9
"""Eigenvalues below this part of the largest are left out: they are what rounding makes of 0."""
_GAP = 1e-8
"""Between primal and dual connectivity of a single matching: far below what rounding takes off a claim."""
_NEARLY = 1e-6
"""Of the target: a bound in floats that is further below needs no proof, as its region is divided."""
_RIDGE, _SPARE = 1e-9, 1e-6
"""Of the largest entry, so that a singular form has an order; and what a loan stays below what it may be."""
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


@dataclass(frozen=True)
class Curved:
    """The box of a region and its relaxed answer, from which flows and loans are made in whole numbers."""

    box: RelaxedMoment
    at: Relaxed

    def whole(self, matrix: Floats) -> tuple[list[int], list[int]]:
        """Flows where the quadratic of a matrix of whole numbers is least, and what its square can lend of the loan."""
        scale = float(np.trace(matrix) - matrix.sum() / len(matrix))
        ends = self.box.ends
        own = on_edges(matrix, ends)
        square = between(np.eye(len(matrix)), ends) * between(matrix, ends)
        lent = np.floor(loan_of(self.box, self.at.multiplier, self.at.lent).lent * scale)
        if lent.any():
            above = np.maximum(lent, 0.0)
            # Where the variance lends, the square has as much more.
            ground = square + np.diag(above - lent + _RIDGE * own.max())
            excess = float(eigh(np.diag(above), ground, eigvals_only=True)[-1])
            lent = np.floor(np.where(lent > 0.0, lent / max(1.0, excess * (1.0 + _SPARE)), lent))
            high = self.box.high[self.box.owners]
            lent = np.clip(lent, np.ceil(-2.0 * own * (1.0 - high) / np.maximum(high, _RIDGE)), 2.0 * own)
        curvature = Lent(self.box, own, lent).curvatures(self.at.point)[0]
        # Singular values that are rounding alone count as 0.
        found = np.linalg.lstsq(square - np.diag(lent) + np.diag(curvature), own, rcond=1e-14)[0]
        flows = [round(value * 2**FLOW_BITS) for value in found.tolist()]
        return flows, [int(each) for each in lent.tolist()] if lent.any() else []


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
        self._program = None if regions.single else program_for(regions.instance)
        self._images = Images(regions.instance.network) if regions.leveled else None
        self._known: dict[tuple[bytes, tuple[Fraction, ...], tuple[Fraction, ...]], tuple[int, Form]] = {}

    def grow(self) -> None:
        """Depth first, as the file has it; when the time is up the regions that are left become leaves."""
        waiting = [self.regions.root]
        while waiting:
            region = waiting.pop()
            image = self._image(region)
            if image is not None:
                self.nodes.append(image)
                continue
            leaf, node = self._explored(region)
            if node is None:
                assert leaf is not None
                self.nodes.append(leaf.node)
                self.least = self.least if leaf.bound is None else min(self.least, leaf.bound)
                continue
            children = children_of(self.regions, region, self._orbits, node)
            self.nodes.append(node)
            waiting.extend(child for child in reversed(children) if child is not None)

    def _image(self, region: Region) -> list[Any] | None:
        """The node of a region that an automorphism takes into an earlier one; None, and known from now on, if none."""
        if self._images is None:
            return None
        form = self._images.form(np.array(region.level), np.array(region.decided))
        # Parts of a region have other levels or smaller boxes, and so have their images: this is no ancestor.
        known = self._known.setdefault((form.levels, region.low, region.high), (len(self.nodes), form))
        if known[0] == len(self.nodes):
            return None
        return ["image", known[0], self._images.between(form, known[1])]

    def _explored(self, region: Region) -> tuple[_Leaf | None, list[Any] | None]:
        """A leaf, or the node that stands in its place."""
        polytope = self.regions.polytope(region)
        arrays = [np.array(list(map(float, each))) for each in (region.low, region.high)]
        node = Node(np.array(region.level), np.array(region.decided), *arrays)
        if self.regions.single:
            return self._of_single(region, polytope, node)
        built = self._branching.built(node)
        if built is None:
            empty, halves = self._empty(polytope), self._halved(region)
            if empty is not None or halves is not None:
                return empty, None if empty is not None else halves
            return self._leaf(polytope, np.eye(self.regions.instance.size), None), None
        goal = float(self.target)

        def decided(factor: float, bound: float) -> bool:
            # Rounding apart.
            return factor - bound <= max(1e-9, _CLOSE * abs(goal - bound))

        at = (self._program and self._program.relaxed(built.box)) or relaxed(built.box, built.inside, decided)
        divided = self._division(region, built.box, at, node)
        if divided is not None and at.bound < goal * (1.0 - _NEARLY) and not self._expired():
            return None, divided
        leaf = self._leaf(polytope, at.multiplier, Curved(built.box, at))
        if divided is None or leaf.bound is None or leaf.bound >= self.target or self._expired():
            return leaf, None
        return None, divided

    def _of_single(self, region: Region, polytope: Polytope, node: Node) -> tuple[_Leaf | None, list[Any] | None]:
        """The same where a single matching is active: of edges with a level there is nothing left to divide."""
        empty = self._empty(polytope) if self.regions.leveled else None
        if empty is not None:
            return empty, None
        built, goal = self._branching.built(node), float(self.target)
        at = Connected(np.zeros(len(polytope.low)), np.eye(self.regions.instance.size), 0.0)
        if built is not None:
            at = connected(built.box, built.inside, lambda most, least: least - _GAP >= goal or most - least <= _GAP)
        leaf, free = self._leaf(polytope, at.multiplier, None), np.flatnonzero(~node.decided)
        if leaf.bound is None or leaf.bound >= self.target or not len(free) or self._expired():
            return leaf, None
        if region.symmetric:
            return None, _orbit(region)
        chances = at.point[np.array(polytope.owners)[free]] + ROUNDING
        return None, ["edge", self._branching.most_met(node, free, chances)]

    def _division(self, region: Region, box: RelaxedMoment, at: Relaxed, node: Node) -> list[Any] | None:
        """Where the relaxed answer is furthest from a plan; None where probabilities are too narrow to be divided."""
        if region.symmetric:
            return _orbit(region)
        choice = self._branching.choice(node, box, at)
        if choice.edge is not None:
            return ["edge", choice.edge]
        point = round(choice.point * 2**POINT_BITS)
        if not region.low[choice.level] < Fraction(point, 2**POINT_BITS) < region.high[choice.level]:
            return self._halved(region)
        return ["split", choice.level, point]

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

    def _leaf(self, polytope: Polytope, matrix: Floats, curved: Curved | None) -> _Leaf:
        """The best leaf of a matrix in few bits."""
        positive = unit_positive(matrix)[0]
        values, axes = np.linalg.eigh(positive)
        factors = (axes * np.sqrt(np.maximum(values, 0.0)))[:, values > _LEAST * values[-1]]
        best: _Leaf | None = None
        for bits in _BITS:
            unit = 2.0**bits / float(np.abs(factors).max())
            vectors = [list(map(int, each)) for each in np.rint(factors.T * unit).tolist() if any(np.rint(each))]
            rounded = np.array(vectors, dtype=float).T
            whole: tuple[list[int], ...] = ([], [])
            if curved is not None:
                whole = curved.whole(rounded @ rounded.T)
                if any(whole[1]) and not is_lendable(self.regions, vectors, whole[1]):
                    continue
            elif not self.regions.single:
                whole = ([0] * len(self.regions.edges), [])
            prices = _prices(polytope, *linear_part(self.regions, polytope, vectors, *whole))
            bound = leaf_bound(self.regions, polytope, vectors, whole[0], prices, whole[1])
            if best is None or best.bound is None or (bound is not None and bound > best.bound):
                lent = [whole[1]] if any(whole[1]) else []
                best = _Leaf(["leaf", vectors, whole[0], prices, *lent], bound)
            if best.bound is not None and best.bound >= self.target:
                break
        return best or self._leaf(polytope, np.eye(self.regions.instance.size), None)


def _orbit(region: Region) -> list[Any]:
    """The first of the edges that may be at the first level."""
    free = [edge for edge, is_decided in enumerate(region.decided) if not is_decided]
    least = min(region.level[edge] for edge in free)
    return ["orbit", next(edge for edge in free if region.level[edge] == least)]


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
