"""What the search hands on: nodes, what a dive found, and subtrees that are tasks of their own."""

from dataclasses import dataclass

from ddlopt.frontier.topology.branch_and_bound.bounds import Flags, Ints
from ddlopt.frontier.topology.branch_and_bound.record import Record
from ddlopt.frontier.topology.branch_and_bound.tree import Log, Stack
from ddlopt.models.topology import TopologyDesign, TopologyInstance


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


@dataclass(frozen=True)
class Subtree:
    """A node to search below, and what is known elsewhere."""

    instance: TopologyInstance
    node: Node
    best_bytes: float
    gap: float
    rounds: int
    recording: bool


@dataclass(frozen=True)
class Searched:
    """What was found below a node: a better design, and what is left to do; part 0 of the record is the node."""

    best: TopologyDesign | None
    left: list[Node]
    stuck: list[Node]
    record: Record
    figures: dict[str, float]
