"""Writes proofs of the four eigenvalue problems: the multipliers of the interior-point method as whole vectors."""

import math
from collections.abc import Callable
from fractions import Fraction

import numpy as np

from ddlopt.certificates.gossip.weights.certificate import SpectralCertificate, Vectors, bound_of_vectors
from ddlopt.models.gossip.spectral.certificates import best_matrix
from ddlopt.models.gossip.spectral.laplacians import Floats
from ddlopt.models.gossip.weights.instance import GossipWeights, WeightsInstance
from ddlopt.solvers.gossip.spectral.interior_point import Iterate, solve
from ddlopt.solvers.gossip.weights.exact import edge_classes
from ddlopt.solvers.gossip.weights.programs import WeightsProgram

_GAP = 1e-8
"""Between primal and dual objective when it ends: far below what rounding takes off a claim."""
_BITS = (16, 24, 32, 40)
"""Of the largest entry of a vector: the fewest that prove enough make the smallest file."""
_LEAST = 1e-13
"""Eigenvalues below this part of the largest are left out: they are what rounding makes of 0."""
_CLAIM_BITS = 50
"""After the binary point of a claim, so that it is a short fraction; it is rounded to the safe side."""


def prove(
    instance: WeightsInstance, solution: GossipWeights, target: Fraction, expired: Callable[[], bool]
) -> SpectralCertificate | None:
    """The certificate that proves ``target``, or as much as it can; None where that is nothing."""
    program, sign = WeightsProgram(instance, edge_classes(instance)), -1 if instance.goal == "process" else 1
    best: tuple[float, Floats, Floats] | None = None

    def stop(at: Iterate) -> bool:
        nonlocal best
        bound = program.bound(at)
        if best is None or sign * bound > sign * best[0]:
            best = bound, *best_matrix(instance, *program.dual(at))
        return abs(program.objective(at) - bound) <= _GAP * abs(bound) or expired()

    solve(program.program(), stop)
    if best is None:
        return None
    _, matrix, prices = best
    values, axes = np.linalg.eigh(matrix)
    found: tuple[Fraction, Vectors, Vectors, tuple[int, ...]] | None = None
    for bits in _BITS:
        plus, minus, unit = _vectors(values, axes, bits, instance.goal in ("averaging", "chain"))
        whole = tuple(math.ceil(price * unit**2) for price in prices.tolist()) if instance.goal == "chain" else ()
        bound = bound_of_vectors(instance, plus, minus, whole)
        if bound is not None and (found is None or sign * bound > sign * found[0]):
            found = bound, plus, minus, whole
        if found is not None and sign * found[0] >= sign * target:
            break
    if found is None:
        return None
    scaled = found[0] * 2**_CLAIM_BITS
    claim = Fraction(math.floor(scaled) if sign > 0 else math.ceil(scaled), 2**_CLAIM_BITS)
    return SpectralCertificate(instance.name, instance.digest, claim, *found[1:])


def _vectors(values: Floats, axes: Floats, bits: int, two_sided: bool) -> tuple[Vectors, Vectors, float]:
    """Eigenvectors at the root of their eigenvalues, in whole multiples of 1 / ``unit``, which is returned last."""
    largest = float(np.abs(values).max(initial=0.0))
    factors = axes * np.sqrt(np.abs(values))
    unit = 2.0**bits / (float(np.abs(factors).max(initial=0.0)) or 1.0)
    sides = []
    for sign in (1, -1) if two_sided else (1,):
        chosen = factors[:, sign * values > _LEAST * largest]
        sides.append(tuple(tuple(map(int, column)) for column in np.rint(chosen.T * unit).tolist()))
    return sides[0], sides[1] if two_sided else (), unit
