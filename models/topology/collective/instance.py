"""One collective on a network that is given."""

from collections import defaultdict
from collections.abc import Iterable
from fractions import Fraction
from functools import cached_property
from itertools import pairwise
from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import Field, SerializerFunctionWrapHandler, model_serializer, model_validator

from ddlopt.models.contracts import Part, without
from ddlopt.models.topology.family import TopologyAnswer, TopologyProblem

Collective = Literal["all-gather", "reduce-scatter", "all-reduce", "broadcast", "all-to-all"]
LARGEST = 20_000
"""Accelerators, and switches, beyond which a number is taken for a mistake."""

Node = Annotated[int, Field(ge=0)]
Path = Annotated[tuple[Node, ...], Field(min_length=2)]
"""Nodes of a path one after the other; between the first and the last they only forward."""
Arc = tuple[int, int]
"""The two ends of a link: from, to."""


class Link(Part):
    """One direction of a link.

    Parameters
    ----------
    source, target : int
    bytes_per_s : float
        Of everything that goes over the link together.
    """

    source: Node
    target: Node
    bytes_per_s: float = Field(gt=0)


class CollectiveInstance(TopologyProblem):
    r"""Trees, rings or flows for one collective of M bytes on a network with N accelerators.

    Nodes 0 .. N - 1 are accelerators, those from N on are switches, which only forward. What each plan has to do:

    * ``all-gather``: each accelerator has M / N bytes, and all get all M;
    * ``reduce-scatter``: each accelerator has M bytes, and gets its M / N of their sum;
    * ``all-reduce``: each accelerator has M bytes, and all get their sum;
    * ``broadcast``: the root has M bytes, and all get them;
    * ``all-to-all``: each accelerator has M bytes, M / N for each accelerator (itself included).

    Links carry bytes all the time, and the objective is how long the busiest one does: the time at full bandwidth, to
    which large collectives come near. Where a step takes ``step_s`` besides, that is added for each link of the
    longest way that bytes go before they are where they are wanted.

    Parameters
    ----------
    accelerators, switches : int
    links : tuple of Link
        Each direction by itself, each pair of nodes at most once.
    collective : {"all-gather", "reduce-scatter", "all-reduce", "broadcast", "all-to-all"}
    collective_bytes : float
        M.
    root : int, optional
        Of a broadcast.
    step_s : float
        Latency: seconds that each link of the longest way takes besides.

    References
    ----------
    L. Zhao et al., "ForestColl: Throughput-optimal collective communications on heterogeneous network fabrics", arXiv
    2402.06787, for all-gather and reduce-scatter.
    """

    kind: ClassVar[str] = "collective"

    problem: Literal["collective"] = "collective"
    accelerators: int = Field(ge=2, le=LARGEST)
    switches: int = Field(default=0, ge=0, le=LARGEST)
    links: tuple[Link, ...] = Field(min_length=1)
    collective: Collective = "all-gather"
    collective_bytes: float = Field(gt=0)
    root: int | None = None
    step_s: float = Field(default=0.0, ge=0)

    @model_serializer(mode="wrap")
    def _only_what_is_said(self, data_of: SerializerFunctionWrapHandler) -> dict[str, Any]:
        return without(self, data_of(self), "step_s")

    @model_validator(mode="after")
    def _check(self) -> Self:
        seen: dict[tuple[int, int], int] = {}
        for place, link in enumerate(self.links):
            for end, node in (("source", link.source), ("target", link.target)):
                if node >= self.nodes:
                    raise ValueError(
                        f"links[{place}].{end} is {node}, but there are {self.nodes} nodes (0..{self.nodes - 1}): "
                        f"{self.accelerators} accelerators and {self.switches} switches"
                    )
            pair = (link.source, link.target)
            if link.source == link.target:
                raise ValueError(f"links[{place}] joins node {link.source} to itself; remove it")
            if seen.setdefault(pair, place) != place:
                raise ValueError(
                    f"links[{place}] is from {pair[0]} to {pair[1]}, as links[{seen[pair]}] is; give their sum once"
                )
        self._check_root()
        self._check_reach()
        return self

    def _check_root(self) -> None:
        if self.collective == "broadcast":
            if self.root is None or not 0 <= self.root < self.accelerators:
                raise ValueError(
                    f"root is {self.root}; a broadcast starts at one of the {self.accelerators} accelerators "
                    f"(0..{self.accelerators - 1})"
                )
        elif self.root is not None:
            raise ValueError(f"root is {self.root}, but an {self.collective} has no root; remove it")

    def _check_reach(self) -> None:
        """Each accelerator is reached from accelerator 0 (or the root), and reaches it unless bytes only go out."""
        first = self.root or 0
        for ends, says in ((self.heads, "cannot be reached from"), (self.tails, "does not reach")):
            found = reached(ends, first)
            missing = next((node for node in range(self.accelerators) if node not in found), None)
            if missing is not None:
                raise ValueError(f"accelerator {missing} {says} accelerator {first}; {self.collective} needs a path")
            if self.collective == "broadcast":
                return

    @property
    def size(self) -> int:
        """Number of accelerators."""
        return self.accelerators

    @property
    def nodes(self) -> int:
        """Accelerators and switches."""
        return self.accelerators + self.switches

    @cached_property
    def bandwidth(self) -> dict[Arc, float]:
        """Bytes per second of each pair of nodes with a link."""
        return {(link.source, link.target): link.bytes_per_s for link in self.links}

    @cached_property
    def heads(self) -> dict[int, list[int]]:
        """The nodes at the other ends of the links out of each node."""
        found: dict[int, list[int]] = defaultdict(list)
        for source, target in self.bandwidth:
            found[source].append(target)
        return found

    @cached_property
    def tails(self) -> dict[int, list[int]]:
        """The nodes at the other ends of the links into each node."""
        found: dict[int, list[int]] = defaultdict(list)
        for source, target in self.bandwidth:
            found[target].append(source)
        return found


class Tree(Part):
    """What happens to a share of the bytes.

    Parameters
    ----------
    share : str
        Of all M bytes: a fraction like ``"3/16"``.
    root : int
        The accelerator that has these bytes first (all-gather, broadcast, all-to-all), or their sum (the others).
    gather : tuple of paths
        From an accelerator to the next one towards the root, which adds up; the last one of each path is nearer to the
        root. One path for every other accelerator, in reduce-scatter and all-reduce.
    spread : tuple of paths
        From an accelerator that has the bytes to one that gets them. One for every other accelerator, in all-gather,
        broadcast and all-reduce; a single one, to where these bytes are to be, in all-to-all.
    """

    share: str = Field(pattern=r"^[0-9]{1,300}(/[1-9][0-9]{0,299})?$")
    root: Node
    gather: tuple[Path, ...] = ()
    spread: tuple[Path, ...] = ()


class CollectivePlan(TopologyAnswer):
    """Trees, all at the same time.

    Parameters
    ----------
    trees : tuple of Tree
    """

    kind: ClassVar[str] = "collective plan"

    problem: Literal["collective"] = "collective"
    trees: tuple[Tree, ...] = Field(min_length=1)


def shares_of_links(trees: Iterable[Tree]) -> dict[Arc, Fraction]:
    """Of all M bytes, what each link carries; the links that carry any."""
    found: dict[Arc, Fraction] = defaultdict(Fraction)
    for tree in trees:
        share = Fraction(tree.share)
        for path in (*tree.gather, *tree.spread):
            for link in pairwise(path):
                found[link] += share
    return found


def busy_s(instance: CollectiveInstance, trees: Iterable[Tree]) -> dict[Arc, Fraction]:
    """Seconds for which each link carries bytes, of those that carry any."""
    size = Fraction(instance.collective_bytes)
    return {link: size * each / Fraction(instance.bandwidth[link]) for link, each in shares_of_links(trees).items()}


def longest_way(trees: Iterable[Tree]) -> int:
    """Links that bytes go over one after the other before they are where they are wanted, at most."""
    return max(
        _deepest(((path[0], path[-1], len(path) - 1) for path in tree.spread), tree.root)
        + _deepest(((path[-1], path[0], len(path) - 1) for path in tree.gather), tree.root)
        for tree in trees
    )


def _deepest(edges: Iterable[tuple[int, int, int]], root: int) -> int:
    """Links between the root and the farthest node, of edges (nearer, farther, links)."""
    above = {far: (near, links) for near, far, links in edges}
    depth = {root: 0}
    for node in above:
        way = [node]
        while way[-1] not in depth:
            way.append(above[way[-1]][0])
        for each in way[-2::-1]:
            depth[each] = depth[above[each][0]] + above[each][1]
    return max(depth.values())


def reached(heads: dict[int, list[int]], first: int) -> set[int]:
    """The nodes to which there is a path."""
    found, waiting = {first}, [first]
    while waiting:
        for node in heads.get(waiting.pop(), ()):
            if node not in found:
                found.add(node)
                waiting.append(node)
    return found
