"""Multiplication by units of Z_n, which maps a circulant graph to one that differs in the names of workers only."""

from functools import lru_cache

import numpy as np
import numpy.typing as npt

Indices = npt.NDArray[np.int64]


@lru_cache(maxsize=16)
def unit_images(nodes: int) -> Indices:
    """(units, n) array: the generator that each becomes, min(ug, n − ug), for units u < n/2 (−1 changes nothing)."""
    units = np.arange(1, max(nodes, 2))
    units = units[np.gcd(units, nodes) == 1]
    scaled = units[:, None] * np.arange(nodes) % nodes
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


def smallest_images(sets: Indices, automorphisms: Indices) -> Indices:
    """The lexicographically smallest image of each sorted set of generators under the automorphisms.

    Parameters
    ----------
    sets : (s, k) int array
        Sets (or multisets) of k elements.
    automorphisms : (a, n) int array
        Image of every element under each of a group of them.

    Returns
    -------
    (s, k) int array
        Two sets have the same row exactly if an automorphism maps one to the other.
    """
    best = np.sort(sets, axis=1)
    everything = np.arange(len(sets))
    for automorphism in automorphisms:
        image = np.sort(automorphism[sets], axis=1)
        different = image != best
        first = different.argmax(axis=1)
        smaller = image[everything, first] < best[everything, first]
        best[smaller] = image[smaller]
    return best
