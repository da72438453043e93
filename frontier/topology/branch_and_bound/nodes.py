"""What the search hands on: nodes, and what a dive found."""

from dataclasses import dataclass

from ddlopt.frontier.topology.branch_and_bound.bounds import Flags, Ints
from ddlopt.frontier.topology.branch_and_bound.tree import Log, Stack


@dataclass(frozen=True)
class Above:
    """What a node hands to its children: allowed sets and weights, and the sets of the servers branched on."""

    allowed: Flags
    weights: Ints
    decided: Ints


@dataclass(frozen=True)
class Node:
    """An open node: server ``row`` gets its set ``k`` of those that ``above`` allows (-1: nothing is branched on)."""

    above: Above
    row: int
    k: int
    part: int
    proven_bytes: float

    @property
    def decided(self) -> Ints:
        """(n,) the set of each server branched on, -1 elsewhere."""
        decided = self.above.decided.copy()
        if self.row >= 0:
            decided[self.row] = self.k
        return decided


@dataclass(frozen=True)
class Dived:
    """What a dive below a node found."""

    node: Node
    z: int
    stack: Stack
    opened: Ints
    leaves: Ints
    log: Log
    nodes: int
    evaluations: int
