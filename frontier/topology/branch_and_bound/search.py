"""The list of open nodes of the branch and bound, what is known so far, and the record of the proof."""

from concurrent.futures import FIRST_COMPLETED, Executor, Future, wait
from dataclasses import dataclass
from math import ceil
from typing import Any

import numpy as np

from ddlopt.certificates.topology.format import UNCOLOURABLE, DesignCertificate
from ddlopt.frontier.engines.best_first import OpenNodes
from ddlopt.frontier.topology.branch_and_bound.bounds import Ints, make_room
from ddlopt.frontier.topology.branch_and_bound.integer_instance import UNITS, integer_instance, unit_of
from ddlopt.frontier.topology.branch_and_bound.leaves import heads_of_sets, lengths_of, routed
from ddlopt.frontier.topology.branch_and_bound.nodes import Above, Dived, Node
from ddlopt.frontier.topology.branch_and_bound.record import Record
from ddlopt.frontier.topology.branch_and_bound.symmetry import Numbering
from ddlopt.frontier.topology.branch_and_bound.tree import (
    LENGTHS,
    MEAN_LENGTH,
    NUMBER,
    REST,
    Log,
    Pace,
    Stack,
    dive,
    make_stack,
)
from ddlopt.models.topology import TopologyDesign, TopologyInstance
from ddlopt.models.topology.evaluate import evaluate
from ddlopt.solvers.heuristic import Clock
from ddlopt.solvers.topology.balance.balance import Job


@dataclass(frozen=True)
class Effort:
    """What a search spends, and why so much."""

    slice: float = 2e8
    """Steps of the innermost loops in one dive: a fraction of a second, after which the clock is looked at."""
    leaf_rounds: int = 300
    """Of weights for one design, before it is routed instead."""
    root_rounds: int = 300
    """The root is bounded once, and all nodes inherit its weights."""
    most_weights: int = 40_000
    """Words of the log of one dive: it is cut off, and the rest is another dive."""
    tight: float = 0.999
    """Part of the gap asked for that the search uses, so that rounding does not spoil the rest."""
    smallest_gap: float = 1e-6
    """Nobody can see less (``OBJECTIVE_TOL``), and whole numbers of the certificate have no more digits."""


_EFFORT = Effort()


class Search:
    """One run: incumbent, open nodes, counts."""

    def __init__(self, instance: TopologyInstance, clock: Clock, rounds: int, recording: bool) -> None:
        self.instance, self.clock, self.job = instance, clock, Job(instance)
        self.integers = integer_instance(instance)
        self.n, self.sets, _ = self.integers.options.shape
        self.copies = (self.integers.options[:, :, :, None] == np.arange(self.n)).sum(axis=2).astype(np.int64)
        self.unit = float(unit_of(instance))
        self.pace = Pace(rounds, _EFFORT.leaf_rounds, 1.3, 0.1, 0.002)
        self.numbering = Numbering(instance, self.integers)
        self.symmetric = self.numbering.useful
        self.record = Record(recording)
        self.width = (self.n * self.n if self.integers.duplex else self.n) + 1
        self.best: TopologyDesign | None = None
        self.best_bytes = self.first_bytes = np.inf
        self.known_bytes = 0.0
        self.open: OpenNodes[Node] = OpenNodes()
        self.under_way: dict[Future[Any], Node] = {}
        self.stuck: list[Node] = []
        self.figures: dict[str, float] = {"nodes": 0, "evaluations": 0, "routed": 0, "images": 0}
        self._told = 0.0
        per_evaluation = self.n * self.sets * (self.n * (instance.degree + 2) + 10)
        self.budget = max(1, int(_EFFORT.slice / per_evaluation))

    def know(self, bound_bytes: float) -> None:
        """Take note of a bound from elsewhere."""
        self.known_bytes = max(self.known_bytes, bound_bytes)

    def offer(self, design: TopologyDesign) -> None:
        """Take a design as incumbent if it is better."""
        checked = evaluate(self.instance, design)
        if checked.feasible and float(checked.details["max_link_load_bytes"]) < self.best_bytes:
            self.best, self.best_bytes = design, float(checked.details["max_link_load_bytes"])
            self.clock.report(self.instance.iteration_time_s(self.best_bytes), self._bound_s())

    @property
    def target_bytes(self) -> float:
        """A load that no design is to stay below for the proof to be complete."""
        if not np.isfinite(self.best_bytes):
            # No link carries more than all bytes on all hops, which are at most four fifths of this.
            return UNITS * self.unit
        instance = self.instance
        gap = _EFFORT.tight * max(self.clock.gap, _EFFORT.smallest_gap)
        time = instance.iteration_time_s(self.best_bytes) * (1 - gap)
        if instance.overlap == "full" and time <= instance.compute_s:
            return 0.0
        seconds = time if instance.overlap == "full" else time - instance.compute_s
        return max(0.0, seconds * instance.link_bandwidth_bytes_per_s)

    @property
    def complete(self) -> bool:
        """Whether nothing is left to search."""
        return not (self.open or self.under_way or self.stuck)

    @property
    def tree_bytes(self) -> float:
        """What the tree proves by itself."""
        waiting = [node.proven_bytes for node in (*self.under_way.values(), *self.stuck)]
        return min([self.target_bytes, self.open.least, *waiting])

    @property
    def proven_bytes(self) -> float:
        """A bound on the load of every design."""
        return max(self.known_bytes, min(self.best_bytes, self.tree_bytes))

    def _bound_s(self) -> float:
        started = self.open or self.under_way or self.figures["nodes"]
        return self.instance.iteration_time_s(self.proven_bytes if started else self.known_bytes)

    @property
    def z(self) -> int:
        """The target in units."""
        return self._units(self.target_bytes)

    def _units(self, load_bytes: float) -> int:
        """The load in units, rounded up; the unit is a power of two, so that the division is exact."""
        return min(UNITS, max(1, ceil(load_bytes / self.unit)))

    def run(self, executor: Executor | None, threads: int) -> None:
        """Search until everything is pruned or the time is up, with threads of an executor."""
        start = Above(
            np.ones((self.n, self.sets), dtype=np.bool_),
            self._weights(int(MEAN_LENGTH)),
            np.full(self.n, -1, dtype=np.int64),
        )
        self._push(Node(start, -1, -1, 0, 0.0))
        if self.known_bytes >= self.target_bytes and not self.record.wanted:
            return
        while (self.open or self.under_way) and not (self.clock.expired and not self.under_way):
            while self.open and len(self.under_way) < threads and not self.clock.expired:
                _, node = self.open.pop()
                if executor is not None:
                    self.under_way[executor.submit(self._dive, node, self.z)] = node
                else:
                    self._take(self._dive(node, self.z))
                    break
            if self.under_way:
                done, _ = wait(self.under_way, return_when=FIRST_COMPLETED)
                for future in done:
                    del self.under_way[future]
                    self._take(future.result())
            self._tell()

    def _tell(self) -> None:
        bound = self._bound_s()
        if self.clock.elapsed_s > self._told + 0.5 and np.isfinite(self.best_bytes):
            self._told = self.clock.elapsed_s
            self.clock.report(self.instance.iteration_time_s(self.best_bytes), bound)

    def _push(self, node: Node) -> None:
        self.open.push(node.proven_bytes, node)

    def _log(self, weights: int) -> Log:
        if not self.record.wanted:
            weights = 0
        return Log(
            np.empty(8 * weights + 4 * self.n * self.sets if weights else 0, dtype=np.int32),
            np.empty((weights, self.n * self.n), dtype=np.uint16),
            np.empty((weights, self.width), dtype=np.int64),
            np.zeros(2, dtype=np.int64),
        )

    def _weights(self, lengths: int | Ints) -> Ints:
        """These lengths, no prices and no tax."""
        weights = np.zeros((3, self.n, self.n), dtype=np.int64)
        weights[LENGTHS] = lengths
        return weights

    def _top(self, node: Node) -> Stack:
        """A stack with the node at its top."""
        stack = make_stack(self.n, self.sets)
        above = node.above
        stack.allowed[0] = above.allowed
        if node.row >= 0:
            stack.allowed[0, node.row] = False
            stack.allowed[0, node.row, node.k] = True
        stack.weights[0] = above.weights
        stack.weights[0, REST, 0, NUMBER] = -1
        return stack

    def _dive(self, node: Node, z: int, pace: Pace | None = None) -> Dived:
        """Search below a node as far as the budget goes, or one level where images are looked for."""
        stack = self._top(node)
        level = int((node.decided >= 0).sum())
        deepest = 0 if node.row < 0 or (self.symmetric and level < self.n - 2) else self.n
        if pace is None:
            pace = self.pace if node.row >= 0 else self.pace._replace(rounds=_EFFORT.root_rounds)
        log = self._log(min(_EFFORT.most_weights, self.budget) + 8 * max(_EFFORT.leaf_rounds, pace.rounds))
        opened = np.zeros((self.n * self.sets + 1, 3), dtype=np.int64)
        leaves = np.zeros((self.budget + 2, self.n + 1), dtype=np.int64)
        counts = np.zeros(4, dtype=np.int64)
        room = make_room(self.n, self.sets)
        dive(self.integers, self.copies, z, pace, stack, room, deepest, self.budget, log, opened, leaves, counts)
        return Dived(node, z, stack, opened[: counts[0]], leaves[: counts[1]], log, int(counts[2]), int(counts[3]))

    def _take(self, dived: Dived) -> None:
        """Open what the dive left, and route the designs that it found."""
        self.figures["nodes"] += dived.nodes
        self.figures["evaluations"] += dived.evaluations
        words = self.record.add(dived.node.part, dived.log)
        levels = [self._above(dived, depth) for depth in range(int(dived.opened[:, 0].max(initial=-1)) + 1)]
        bytes_of_z = dived.z * self.unit
        for depth, k, place in dived.opened.tolist():
            row, part = int(dived.stack.row[depth]), self.record.new_part()
            if self.record.wanted:
                words[place] = part
            proven = max(dived.node.proven_bytes, float(dived.stack.proven[depth]) * bytes_of_z)
            node = Node(levels[depth], row, k, part, proven)
            if not (self.symmetric and self._image(node)):
                self._push(node)
        for *leaf, place in dived.leaves.tolist():
            part = self.record.new_part()
            if self.record.wanted:
                words[place] = part
            self._route(np.array(leaf), part)

    def _above(self, dived: Dived, depth: int) -> Above:
        """What the node at a depth of a dive hands to its children."""
        stack, decided = dived.stack, dived.node.decided
        for level in range(depth):
            decided[stack.row[level]] = stack.path[depth, level]
        return Above(stack.allowed[depth].copy(), stack.weights[depth].copy(), decided)

    def _image(self, node: Node) -> bool:
        """Whether another node is searched in place of this one."""
        seen = self.numbering.seen(node.decided, node.part)
        if seen is None:
            return False
        self.figures["images"] += 1
        if self.record.wanted:
            self.record.image(node.part, *seen)
        return True

    def _route(self, sets: Ints, part: int) -> None:
        """Route a complete design; it may be the new incumbent, and its dual values should exclude anything better."""
        self.figures["routed"] += 1
        allowed = np.zeros((self.n, self.sets), dtype=np.bool_)
        allowed[np.arange(self.n), sets] = True
        heads, uncolourable = heads_of_sets(self.instance, self.integers.options[np.arange(self.n), sets])
        lengths: int | Ints = int(MEAN_LENGTH)
        if heads is not None:
            found = routed(self.job, heads)
            if found is not None:
                lengths = lengths_of(found)
                if found.congestion_bytes < self.best_bytes:
                    self.offer(found.design())
        elif uncolourable:
            self.record.words[part] = np.array([UNCOLOURABLE], dtype=np.int32)
            return
        above = Above(allowed, self._weights(lengths), np.full(self.n, -1, dtype=np.int64))
        node = Node(above, -1, -1, part, 0.0)
        dived = self._dive(node, self.z, self.pace._replace(leaf_rounds=0))
        if not self._closed(dived):
            dived = self._dive(node, self.z, self.pace._replace(leaf_rounds=_EFFORT.root_rounds))
        if not self._closed(dived):
            proven = float(dived.stack.proven[0]) * dived.z * self.unit
            self.stuck.append(Node(above, -1, -1, part, proven))

    def _closed(self, dived: Dived) -> bool:
        """Whether the top of a dive was pruned; keeps the proof if it was."""
        pruned = len(dived.opened) == 0 and len(dived.leaves) == 0
        if pruned:
            self.record.add(dived.node.part, dived.log)
        return pruned

    def certificate(self) -> DesignCertificate:
        """The record, with what is still open excluded for the bound reached instead of the incumbent."""
        left = [*self.open, *self.stuck]
        claim = self.tree_bytes
        for attempt in range(20):
            z = self._units(claim)
            dives = [self._dive(node, z) for node in left]
            if all(len(dived.opened) == 0 and len(dived.leaves) == 0 for dived in dives):
                break
            # A millionth at first, and at the twentieth attempt all of it.
            claim *= 1 - 1e-6 * 2**attempt
        for dived in dives if left else []:
            self.record.add(dived.node.part, dived.log)
        return self.record.certificate(self.instance, self.unit, self._units(claim), self.width)
