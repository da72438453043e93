"""What collective libraries do without knowing the network: rings in order, halving and doubling, two binary trees."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

from ddlopt.models.errors import NoSolutionError
from ddlopt.models.topology.collective.instance import CollectiveInstance, CollectivePlan, Path, Tree, longest_way
from ddlopt.models.topology.collective.paths import shortest
from ddlopt.solvers.heuristic import Answer, Clock, Heuristic

Edges = list[tuple[int, int]]
"""(nearer to the root, farther)."""


@dataclass(frozen=True)
class _Oblivious(Heuristic, uses=()):
    """Trees by the numbers of accelerators; each of their arcs is a path that takes least at full bandwidth."""

    covers: ClassVar[type[CollectiveInstance]] = CollectiveInstance

    def trees(self, instance: CollectiveInstance) -> list[tuple[Fraction, int, Edges]]:
        """Share, root and edges."""
        raise NotImplementedError

    def refuses(self, instance: Any) -> str | None:
        """All-to-all has no trees."""
        return "all-to-all is sent along paths, not trees" if instance.collective == "all-to-all" else None

    def answer(self, instance: CollectiveInstance, seed: int, clock: Clock, start: Any) -> Answer[CollectivePlan]:
        """The trees on the network."""
        prices = {link: 1 / each for link, each in instance.bandwidth.items()}
        _, paths = shortest(instance, prices)
        found = [_laid(instance, paths, *each) for each in self.trees(instance)]
        return CollectivePlan(instance=instance.name, instance_digest=instance.digest, trees=tuple(found)), {}


def _laid(instance: CollectiveInstance, paths: list[list[Path]], share: Fraction, root: int, edges: Edges) -> Tree:
    up = instance.collective in ("reduce-scatter", "all-reduce")
    down = instance.collective != "reduce-scatter"
    return Tree(
        share=str(share),
        root=root,
        gather=tuple(_joined(paths, far, near) for near, far in edges) if up else (),
        spread=tuple(_joined(paths, near, far) for near, far in edges) if down else (),
    )


def _joined(paths: list[list[Path]], first: int, last: int) -> Path:
    """The path between two accelerators, which there need not be where bytes only go out of a root.

    Raises
    ------
    NoSolutionError
    """
    if not paths[first][last]:
        raise NoSolutionError(f"no path leads from accelerator {first} to {last}, which follow each other by number")
    return paths[first][last]


def _of_all_roots(instance: CollectiveInstance, edges: Callable[[int], Edges]) -> list[tuple[Fraction, int, Edges]]:
    roots = range(instance.accelerators) if instance.root is None else (instance.root,)
    return [(Fraction(1, len(roots)), root, edges(root)) for root in roots]


@dataclass(frozen=True)
class RingInOrder(Heuristic, uses=()):
    """One ring in the order of numbers, as a library has that knows nothing of the network."""

    name: ClassVar[str] = "ring-in-order"
    covers: ClassVar[type[CollectiveInstance]] = CollectiveInstance

    def refuses(self, instance: Any) -> str | None:
        """All-to-all has no rings."""
        return "all-to-all is sent along paths, not rings" if instance.collective == "all-to-all" else None

    def answer(self, instance: CollectiveInstance, seed: int, clock: Clock, start: Any) -> Answer[CollectivePlan]:
        """The ring; neighbours are joined by the path that takes least at full bandwidth."""
        _, paths = shortest(instance, {link: 1 / each for link, each in instance.bandwidth.items()})
        count = instance.accelerators
        # The hop back to the root of a broadcast is not used.
        last = None if instance.root is None else (instance.root - 1) % count
        ring = tuple(
            (node, (node + 1) % count) if node == last else _joined(paths, node, (node + 1) % count)
            for node in range(count)
        )
        trees = tuple(ring_trees(instance, ring, Fraction(1)))
        return CollectivePlan(instance=instance.name, instance_digest=instance.digest, trees=trees), {}


def ring_trees(instance: CollectiveInstance, ring: Sequence[Path], share: Fraction) -> Iterable[Tree]:
    """A path for each root, out of it or into it along the ring."""
    count = instance.accelerators
    wanted = range(count) if instance.root is None else (instance.root,)
    for place, path in enumerate(ring):
        if path[0] not in wanted:
            continue
        around = tuple(ring[(place + each) % count] for each in range(count - 1))
        into = tuple(ring[(place + 1 + each) % count] for each in range(count - 1))
        yield Tree(
            share=str(share / len(wanted)),
            root=path[0],
            gather=into if instance.collective in ("reduce-scatter", "all-reduce") else (),
            spread=around if instance.collective != "reduce-scatter" else (),
        )


@dataclass(frozen=True)
class HalvingDoubling(_Oblivious):
    """Recursive halving and doubling: binomial trees, for a power of two.

    References
    ----------
    R. Thakur, R. Rabenseifner, W. Gropp, "Optimization of collective communication operations in MPICH", International
    Journal of High Performance Computing Applications 19, 2005.
    """

    name: ClassVar[str] = "halving-doubling"

    def refuses(self, instance: Any) -> str | None:
        """Numbers of accelerators that are no power of two."""
        count = instance.accelerators
        if count & (count - 1):
            return f"there are {count} accelerators; halving needs a power of two"
        return super().refuses(instance)

    def trees(self, instance: CollectiveInstance) -> list[tuple[Fraction, int, Edges]]:
        """In each step, whoever has the bytes sends them to the partner at twice the distance."""

        def binomial(root: int) -> Edges:
            have, edges, step = [root], Edges(), 1
            while step < instance.accelerators:
                edges += [(node, node ^ step) for node in have]
                have += [node ^ step for node in have]
                step *= 2
            return edges

        return _of_all_roots(instance, binomial)


@dataclass(frozen=True)
class DoubleBinaryTree(_Oblivious):
    """Two binary trees with half of the bytes each, the leaves of one inside the other, as NCCL has for all-reduce.

    In-order numbering: a node that is divisible by 2^k and not by 2^(k+1) has height k. The second tree is the first
    one shifted by one place, or, where the number of accelerators is even, mirrored.

    References
    ----------
    P. Sanders, J. Speck, J. L. Träff, "Two-tree algorithms for full bandwidth broadcast, reduction and scan", Parallel
    Computing 35(12), 2009.
    """

    name: ClassVar[str] = "double-binary-tree"

    def refuses(self, instance: Any) -> str | None:
        """Collectives whose bytes have many roots."""
        if instance.collective != "all-reduce":
            return f"two trees have two roots, and this is an {instance.collective}"
        return super().refuses(instance)

    def trees(self, instance: CollectiveInstance) -> list[tuple[Fraction, int, Edges]]:
        """The two trees."""
        count = instance.accelerators
        first = binary_tree(count)
        if count % 2:
            second = [((a + 1) % count, (b + 1) % count) for a, b in first]
        else:
            second = [(count - 1 - a, count - 1 - b) for a, b in first]
        half = Fraction(1, 2)
        return [(half, _root(first, count), first), (half, _root(second, count), second)]


@dataclass(frozen=True)
class Shallow(_Oblivious):
    """Trees of shortest paths, on which bytes take as few steps as they can: out of each root, or out of one for sums.

    With next to no bytes that is optimal where steps take time. An all-reduce has the root that is nearest to all.
    """

    name: ClassVar[str] = "shallow"

    def answer(self, instance: CollectiveInstance, seed: int, clock: Clock, start: Any) -> Answer[CollectivePlan]:
        """Of each root."""
        up, down = instance.collective in ("reduce-scatter", "all-reduce"), instance.collective != "reduce-scatter"
        roots = range(instance.accelerators) if instance.root is None else (instance.root,)
        found = []
        for root in roots:
            spread = _nearest(instance, instance.heads, root) if down else ()
            gather = _nearest(instance, instance.tails, root) if up else ()
            back = tuple(path[::-1] for path in gather)
            found.append(Tree(share=str(Fraction(1, len(roots))), root=root, gather=back, spread=spread))
        if instance.collective == "all-reduce":
            found = [min(found, key=lambda tree: longest_way([tree])).model_copy(update={"share": "1"})]
        return CollectivePlan(instance=instance.name, instance_digest=instance.digest, trees=tuple(found)), {}


@dataclass(frozen=True)
class ShortestPaths(Heuristic, uses=()):
    """Every pair of an all-to-all on one path, of those that take a byte the least time at full bandwidth."""

    name: ClassVar[str] = "shortest-paths"
    covers: ClassVar[type[CollectiveInstance]] = CollectiveInstance

    def refuses(self, instance: Any) -> str | None:
        """What has trees."""
        return None if instance.collective == "all-to-all" else f"an {instance.collective} is sent along trees"

    def answer(self, instance: CollectiveInstance, seed: int, clock: Clock, start: Any) -> Answer[CollectivePlan]:
        """Of each ordered pair."""
        count = instance.accelerators
        _, paths = shortest(instance, {link: 1 / each for link, each in instance.bandwidth.items()})
        pairs = [(i, j) for i in range(count) for j in range(count) if i != j]
        trees = tuple(Tree(share=f"1/{count}", root=i, spread=(paths[i][j],)) for i, j in pairs)
        return CollectivePlan(instance=instance.name, instance_digest=instance.digest, trees=trees), {}


def _nearest(instance: CollectiveInstance, heads: dict[int, list[int]], root: int) -> tuple[Path, ...]:
    """Paths to each accelerator from the last one on a shortest way out of the root."""
    ways: dict[int, Path] = {root: (root,)}
    waiting = [root]
    for node in waiting:
        for other in heads.get(node, ()):
            if other not in ways:
                ways[other] = ((node,) if node < instance.accelerators else ways[node]) + (other,)
                waiting.append(other)
    return tuple(ways[node] for node in range(instance.accelerators) if node != root)


def binary_tree(count: int) -> Edges:
    """Edges of an in-order binary tree over 0 .. count - 1, whose root is 0 with one child."""
    edges: Edges = []
    for node in range(1, count):
        step = node & -node
        above = (node ^ step) | (step << 1)
        edges.append((above if above < count else node ^ step, node))
    return edges


def _root(edges: Edges, count: int) -> int:
    (root,) = set(range(count)) - {far for _, far in edges}
    return root
