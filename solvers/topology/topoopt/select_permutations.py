"""Which ring generators an all-reduce group gets: TopoOpt's SelectPermutations.

Both rules spread the generators geometrically, so that their rings together make a network of small diameter, like
the fingers of Chord.

References
----------
W. Wang et al., "TopoOpt: Co-optimizing network topology and parallelization strategy for distributed training jobs",
NSDI 2023, SelectPermutations; the released FlexNet code, ``SpMulMat::choose_n_geo``.
"""

from bisect import bisect_left
from collections.abc import Sequence

from ddlopt.models.tolerances import ROUNDING


def select_permutations(candidates: Sequence[int], size: int, count: int) -> tuple[int, ...]:
    """The paper's rule: start at the smallest generator, then repeatedly take the one nearest to x times the last.

    x is ``size ** (1 / count)``. A tie goes to the smaller generator.

    Parameters
    ----------
    candidates : sequence of int
        Ring generators, increasing.
    size : int
        Members of the group.
    count : int
        Generators wanted.

    Returns
    -------
    tuple of int
        In the order of choice; all candidates where there are at most ``count``.

    Examples
    --------
    >>> select_permutations((1, 3, 5, 7, 9, 11, 13, 15), size=16, count=3)
    (1, 3, 7)
    """
    pool = list(candidates)
    if not pool or count < 1:
        return ()
    ratio = size ** (1 / count)
    chosen = [pool.pop(0)]
    while pool and len(chosen) < count:
        target = chosen[-1] * ratio
        place = bisect_left(pool, target)
        if place == len(pool) or (place > 0 and target - pool[place - 1] <= pool[place] - target):
            place -= 1
        chosen.append(pool.pop(place))
    return tuple(chosen)


def choose_geometric(candidates: Sequence[int], count: int, both_ways: bool = True) -> tuple[int, ...]:
    """The released code's rule: the next unused generator at or above a geometric series from smallest to largest.

    With ``both_ways`` (a ring and its reverse per generator) the series stops one step before the largest candidate.
    The rule may choose p as well as k - p, which doubles a duplex ring. Where the released code would run past the
    last candidate, the smallest unused one is taken.

    Parameters
    ----------
    candidates : sequence of int
        Ring generators, increasing.
    count : int
        Generators wanted.

    Returns
    -------
    tuple of int
        Increasing; all candidates where there are at most ``count``.

    Examples
    --------
    >>> choose_geometric((1, 3, 5, 7, 9, 11, 13, 15), count=2)
    (1, 5)
    """
    if not candidates or count < 1:
        return ()
    if count == 1:
        return (candidates[0],)
    if count >= len(candidates):
        return tuple(candidates)
    ratio = (candidates[-1] / candidates[0]) ** (1 / (count if both_ways else count - 1))
    pool = list(candidates)
    target, chosen = float(candidates[0]), []
    for _ in range(count):
        # Rounding must not push the series past the candidate that it ends on.
        place = bisect_left(pool, target * (1 - ROUNDING))
        chosen.append(pool.pop(place if place < len(pool) else 0))
        target *= ratio
    return tuple(sorted(chosen))
