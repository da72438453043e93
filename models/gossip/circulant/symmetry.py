"""Multiplication by units of Z_n, which maps a circulant graph to one that differs in the names of workers only."""

from functools import lru_cache

import numpy as np

from ddlopt.models.topology.symmetry.cayley import AbelianGroup, Indices


@lru_cache(maxsize=16)
def unit_images(nodes: int) -> Indices:
    """(units, n) array: the generator that each becomes, min(ug, n − ug), for units u < n/2 (−1 changes nothing)."""
    scaled = AbelianGroup((nodes,)).scalings
    images = np.minimum(scaled, nodes - scaled) % nodes
    return np.unique(images, axis=0)


def leaders(nodes: int) -> Indices:
    """(n,) array: the least generator that units make of each; those with the same gcd with n have the same."""
    found: Indices = unit_images(nodes).min(axis=0)
    return found


def led(nodes: int, generators: tuple[int, ...]) -> Indices:
    """Image of every generator under a unit that makes the least leader of the set one of its images."""
    if not generators:
        return np.arange(nodes)
    first = leaders(nodes)
    least = min(int(first[g]) for g in generators)
    images = unit_images(nodes)
    found: Indices = next(image for image in images if least in image[list(generators)])
    return found
