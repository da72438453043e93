"""Trees out of what links carry in the optimum of a linear program: numbers with rounding errors become whole."""

import itertools
from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction
from math import lcm
from typing import NamedTuple

import numpy as np

from ddlopt.models.errors import NoSolutionError, SolverError
from ddlopt.models.topology.collective.instance import Arc, CollectiveInstance, Path, Tree
from ddlopt.models.topology.collective.kernels import Ints, least_arriving
from ddlopt.models.topology.collective.packing import gathering, joined, packed_trees

_DENOMINATORS = (60, 1000)
"""Of single numbers: optima have small ones; what they have in common is sought among these."""
_MOST = 10**7
"""Common denominator that is worth trying."""
_SAME = 1e-7
"""By which numbers of a solver may be off a fraction of a small denominator."""
_FINE = 2**24
"""Parts of all bytes to which shares of roots are rounded elsewhere."""
_FINER = 2**44
"""Units of all bytes in which what links carry is counted then."""
_NOTHING = 1e-9
"""Part of all bytes that counts as none."""
_LOST = 1e-5
"""Part of all bytes that may not fit: more than solvers' tolerances over all rows."""


class _Whole(NamedTuple):
    """What links carry and copies of trees by root, in whole numbers."""

    network: Ints
    counts: Ints


def trees_of(
    instance: CollectiveInstance, rooted: Sequence[float], carried: Mapping[str, Mapping[Arc, float]]
) -> list[Tree]:
    """Trees that use no link for more than what it carries, up to rounding.

    Parameters
    ----------
    instance : CollectiveInstance
    rooted : sequence of float
        Bytes with their root at each accelerator, in any unit.
    carried : mapping
        For ``"gather"``, ``"spread"`` or both, bytes of each link in this unit.

    Raises
    ------
    SolverError
        If what links carry does not bring all bytes everywhere.
    """
    total = sum(rooted)
    roots = [max(0.0, each / total) for each in rooted]
    ways = {
        phase: _paths(instance, {_turned(link, phase): each / total for link, each in network.items()})
        for phase, network in carried.items()
    }
    made = _in_small_parts(instance, roots, ways) or _in_fine_parts(instance, roots, ways)
    try:
        trees = {phase: packed_trees(each.network, each.counts) for phase, each in made.items()}
    except NoSolutionError as problem:
        raise SolverError(f"no trees are found in what links carry: {problem}") from None
    down, up = trees.get("spread", []), [gathering(tree) for tree in trees.get("gather", [])]
    return joined(up, down) if up and down else up or down


def _turned(link: Arc, phase: str) -> Arc:
    return link if phase == "spread" else (link[1], link[0])


def _paths(instance: CollectiveInstance, network: dict[Arc, float]) -> list[tuple[Path, float]]:
    """What links carry as paths between accelerators, and circles of switches: balanced where parts are rounded.

    They may lead back to where they begin; what enters a switch as what and leaves it is not for them to say.
    """
    switches = range(instance.accelerators, instance.nodes)
    left = {link: each for link, each in network.items() if each > _NOTHING}
    found = []
    for first in sorted(left, key=lambda link: (link[0] in switches, link)):
        while left[first] > _NOTHING:
            path = [*first]
            further = [path[-1]]
            while path[-1] in switches and path[-1] not in path[:-1] and further:
                further = [j for (i, j), each in left.items() if i == path[-1] and each > _NOTHING]
                if further:
                    path.append(max(further, key=lambda j: left[path[-1], j]))
            if not further:
                left[path[-2], path[-1]] = 0.0  # what enters a switch and does not leave it is rounding
                continue
            path = path[path.index(path[-1]) :] if path[-1] in switches else path
            links = list(itertools.pairwise(path))
            amount = min(left[link] for link in links)
            for link in links:
                left[link] -= amount
            if path[-1] in switches or path[0] not in switches:  # and so is what leaves one and has not entered it
                found.append((tuple(path), min(amount, 1.0)))  # with all bytes a way is as wide as one may need
    return found


def _in_small_parts(
    instance: CollectiveInstance, roots: Sequence[float], ways: Mapping[str, list[tuple[Path, float]]]
) -> dict[str, _Whole] | None:
    """All numbers as multiples of a fraction that they are near to, where that is still enough for all trees."""
    known = [*roots, *(each for paths in ways.values() for _, each in paths)]
    for most in _DENOMINATORS:
        near = [Fraction(each).limit_denominator(most) for each in known]
        common = lcm(*(each.denominator for each in near))
        if common > _MOST or any(abs(a - b) > _SAME for a, b in zip(near, known, strict=True)):
            continue
        counts = np.array([int(each * common) for each in near[: len(roots)]], dtype=np.int64)
        if counts.sum() != common:
            continue
        rest = iter(near[len(roots) :])
        made = {
            phase: _Whole(_matrix(instance, ((path, int(next(rest) * common)) for path, _ in paths)), counts)
            for phase, paths in ways.items()
        }
        if all(
            least_arriving(each.network, instance.accelerators, each.counts, common) == common for each in made.values()
        ):
            return made
    return None


def _in_fine_parts(
    instance: CollectiveInstance, roots: Sequence[float], ways: Mapping[str, list[tuple[Path, float]]]
) -> dict[str, _Whole]:
    """Roots in parts of all bytes, and of each part as many units as fit into what links carry."""
    counts = np.array([round(each * _FINE) for each in roots], dtype=np.int64)
    counts[counts.argmax()] += _FINE - counts.sum()
    if len(set(roots)) == 1:
        counts = np.ones(len(roots), dtype=np.int64)
    shared = int(np.gcd.reduce(counts))
    counts //= shared
    total, made = int(counts.sum()), {}
    for phase, paths in ways.items():
        network = _matrix(instance, ((path, int(each * _FINER)) for path, each in paths))
        most = _FINER // total
        low, high = int(most * (1 - _LOST)), most + 1

        def arrives(copies: int, network: Ints = network) -> bool:
            wanted = copies * total
            return bool(least_arriving(network, instance.accelerators, counts * copies, wanted) == wanted)

        if not arrives(low):
            raise SolverError("what links carry does not bring all bytes to each accelerator")
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (middle, high) if arrives(middle) else (low, middle)
        made[phase] = _Whole(network, counts * low)
    return made


def _matrix(instance: CollectiveInstance, paths: Iterable[tuple[Path, int]]) -> Ints:
    network: Ints = np.zeros((instance.nodes, instance.nodes), dtype=np.int64)
    for path, amount in paths:
        for i, j in itertools.pairwise(path):
            network[i, j] += amount
    return network
