"""Trees packed into a network of whole capacities: switches split off, trees grown, their links as paths."""

from collections.abc import Callable
from fractions import Fraction

import numpy as np

from ddlopt.models.errors import NoSolutionError
from ddlopt.models.topology.collective.instance import Path, Tree
from ddlopt.models.topology.collective.kernels import Ints, packed
from ddlopt.models.topology.collective.splitting import Split

_TREES_A_ROOT, _TREES_A_NODE = 60, 4
"""Different trees that are grown for each root, and for each accelerator besides, at most; boxes and designs of the
library have up to ten a root."""


def never() -> bool:
    """The time is not up."""
    return False


def packed_trees(network: Ints, counts: Ints, expired: Callable[[], bool] = never) -> list[Tree]:
    """Trees out of all roots, that spread ``counts`` of each and use no link for more than its capacity.

    Parameters
    ----------
    network : (nodes, nodes) int array
        Capacities; accelerators first.
    counts : (accelerators,) int array
        Copies of trees from each accelerator. Their sum is to arrive at each accelerator, and can.
    expired : callable
        Whether the time is up.

    Returns
    -------
    list of Tree
        Their shares are parts of all copies.

    Raises
    ------
    NoSolutionError
        If as much does not lead into a switch as out of it, the time is up, or there would be too many trees.
    """
    split = Split(network, len(counts), counts, expired)
    split.off()
    between = np.ascontiguousarray(split.network[: len(counts), : len(counts)])
    most = _TREES_A_ROOT * int(np.count_nonzero(counts)) + _TREES_A_NODE * len(counts) + 100
    parents, amounts, roots = packed(between, counts, most)
    if not len(amounts):
        raise NoSolutionError("too many different trees would be needed")
    total = int(counts.sum())
    return [
        tree
        for before, amount, root in zip(parents.tolist(), amounts.tolist(), roots.tolist(), strict=True)
        for tree in _on_paths(split, before, amount, root, total)
    ]


def _on_paths(split: Split, before: list[int], amount: int, root: int, total: int) -> list[Tree]:
    """A tree for each combination of paths through switches that its links stand for."""
    edges = [split.take(parent, node, amount) for node, parent in enumerate(before) if parent >= 0]
    found, left = [], amount
    while left:
        share = min([left, *(paths[-1][1] for paths in edges)])
        chosen: list[Path] = [paths[-1][0] for paths in edges]
        found.append(Tree(share=str(Fraction(share, total)), root=root, spread=tuple(chosen)))
        left -= share
        for paths in edges:
            path, size = paths.pop()
            if size > share:
                paths.append((path, size - share))
    return found


def gathering(tree: Tree) -> Tree:
    """A tree that gathers, of one that spreads over links that are turned round."""
    return Tree(share=tree.share, root=tree.root, gather=tuple(path[::-1] for path in tree.spread))


def joined(up: list[Tree], down: list[Tree]) -> list[Tree]:
    """Trees that gather and trees that spread, of the same shares by root, joined root by root."""
    found = []
    for root in sorted({tree.root for tree in up}):
        first = [(Fraction(tree.share), tree) for tree in up if tree.root == root]
        second = [(Fraction(tree.share), tree) for tree in down if tree.root == root]
        while first and second:
            (one, gathers), (other, spreads) = first.pop(), second.pop()
            share = min(one, other)
            found.append(Tree(share=str(share), root=root, gather=gathers.gather, spread=spreads.spread))
            first += [(one - share, gathers)] if one > share else []
            second += [(other - share, spreads)] if other > share else []
    return found
