"""A tree without nodes that fix columns: each bound that reduced costs give is a branching with a leaf at one end."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from ddlopt.certificates.linear.check import Program

Node = Sequence[Any]


def plain_tree(program: Program, nodes: Sequence[Node]) -> list[Node]:
    """The same tree of branchings and leaves alone, for formats that know nothing else.

    Parameters
    ----------
    nodes : sequence
        A tree that :func:`~ddlopt.certificates.linear.check.check_tree` accepts.
    """
    return list(_Plain(program).tree(nodes)) if any(node[0] == "fix" for node in nodes) else list(nodes)


@dataclass
class _Plain:
    program: Program
    lower: dict[int, int] = field(default_factory=dict)
    upper: dict[int, int] = field(default_factory=dict)

    def tree(self, nodes: Sequence[Node]) -> Iterator[Node]:
        """Node by node; what is waiting is a leaf, or the bounds of the case that comes next."""
        waiting: list[Any] = [({}, {})]
        for node in nodes:
            while isinstance(waiting[-1], list):
                yield waiting.pop()
            self.lower, self.upper = waiting.pop()
            if node[0] == "branch":
                _, column, split = node
                waiting += [self._with(0, column, split + 1), self._with(1, column, split)]
            if node[0] != "fix":
                yield node
                continue
            yield from self._fix(node, waiting)
        yield from reversed(waiting)

    def _fix(self, node: Node, waiting: list[Any]) -> Iterator[Node]:
        """Branchings of which one end is closed by the multipliers of the node."""
        _, exponent, rows, multipliers = node
        leaf = ["dual", exponent, rows, multipliers]
        found = self.program.fixed(exponent, dict(zip(rows, multipliers, strict=True)), self.lower, self.upper)
        for side, column, limit in sorted(found):  # those from below first: their leaves come at once
            if side == 0:
                yield ["branch", column, limit - 1]
                yield leaf
            else:
                yield ["branch", column, limit]
                waiting.append(leaf)
            self.lower, self.upper = self._with(side, column, limit)
        waiting.append((self.lower, self.upper))

    def _with(self, side: int, column: int, limit: int) -> tuple[dict[int, int], dict[int, int]]:
        """Bounds of a case with one more, as ``check_tree`` keeps them."""
        bounds = self.lower, self.upper
        before = bounds[side].get(column)
        tightest = max if side == 0 else min
        changed = {**bounds[side], column: limit if before is None else tightest(before, limit)}
        return (changed, self.upper) if side == 0 else (self.lower, changed)
