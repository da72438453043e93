"""Numba kernel of the Metropolis walk over strategies: one proposal costs a few rows of loads, not a whole evaluation.

Choices are numbered from one layer to the next: strategy a of layer l is *row* ``first[l] + a``. Bytes that are reduced
in group sets and moved in patterns are *columns*, sets first. Nothing here knows an instance.
"""

# mypy: disable-error-code="untyped-decorator, no-any-return"
# ruff: noqa: NPY002 (compiled code is fastest with Numba's own state of random numbers)

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from ddlopt.models.kernels import helper, kernel

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]

CONTINUE = 0.75
"""Chance that a strategy handed on to a neighbour is handed on further."""


class Rows(NamedTuple):
    """Strategies: first row of each layer; of each its name (equal names, equal numbers), time, memory, error, place.

    The servers of place p are ``servers[place_first[p] : place_first[p + 1]]``; row r by itself sends
    ``amount[sent_first[r] : sent_first[r + 1]]`` bytes in the columns ``column[…]``.
    """

    first: Ints
    name: Ints
    time: Floats
    memory: Floats
    error: Floats
    place: Ints
    place_first: Ints
    servers: Ints
    sent_first: Ints
    column: Ints
    amount: Floats


class Graph(NamedTuple):
    """Edges of the layers: ends, bytes, and the column of each pair of strategies, -1 where nothing moves.

    Pair (a, b) of edge e is ``moves[move_first[e] + a * size of its target + b]``. Edges at layer l, entering or
    leaving, are ``incident[incident_first[l] : incident_first[l + 1]]``. ``order`` is topological.
    """

    source: Ints
    target: Ints
    amount: Floats
    move_first: Ints
    moves: Ints
    incident_first: Ints
    incident: Ints
    order: Ints


class Fabric(NamedTuple):
    """What a byte in each column puts on each arc, (columns, arcs); which columns have no way; limits and rates."""

    loads: Floats
    blocked: Bools
    bandwidth: float
    memory: float
    error: float
    overlap: bool


class State(NamedTuple):
    """Strategies chosen and what follows: (layers,), loads (arcs,), busy and memory (n,) by server, error (1,)."""

    choice: Ints
    load: Floats
    busy: Floats
    memory: Floats
    error: Floats


class Scratch(NamedTuple):
    """Room for one proposal: bytes by column and the columns touched; when layers are done; layers visited."""

    bytes: Floats
    touched: Ints
    done: Floats
    seen: Bools


class Tally(NamedTuple):
    """How a walk went: best time, last time, moves proposed that change something, moves accepted."""

    best: float
    last: float
    proposed: int
    accepted: int


_ROWS = f"record(Rows, {2 * 'i8[::1], '}{3 * 'f8[::1], '}{5 * 'i8[::1], '}f8[::1])"
_GRAPH = "record(Graph, i8[::1], i8[::1], f8[::1], i8[::1], i8[::1], i8[::1], i8[::1], i8[::1])"
_FABRIC = "record(Fabric, f8[:, ::1], b1[::1], f8, f8, f8, b1)"
_STATE = "record(State, i8[::1], f8[::1], f8[::1], f8[::1], f8[::1])"
_SCRATCH = "record(Scratch, f8[::1], i8[::1], f8[::1], b1[::1])"


@kernel("(i8,)")
def seed_walk(seed: int) -> None:
    """Seed the random numbers of the walk."""
    np.random.seed(seed)


@helper
def _send(column: int, amount: float, scratch: Scratch, count: int) -> int:
    """Note bytes of a column; returns how many columns are touched now."""
    if column < 0 or amount == 0.0:
        return count
    touched, sent = scratch.touched, scratch.bytes
    for i in range(count):
        if touched[i] == column:
            sent[column] += amount
            return count
    touched[count] = column
    sent[column] = amount
    return count + 1


@helper
def _edge_column(e: int, graph: Graph, rows: Rows, choice: Ints) -> int:
    target = graph.target[e]
    size = rows.first[target + 1] - rows.first[target]
    return graph.moves[graph.move_first[e] + choice[graph.source[e]] * size + choice[target]]


@helper
def _occupy(row: int, sign: float, rows: Rows, state: State) -> None:
    place, busy, memory = rows.place[row], state.busy, state.memory
    state.error[0] += sign * rows.error[row]
    for i in range(rows.place_first[place], rows.place_first[place + 1]):
        server = rows.servers[i]
        busy[server] += sign * rows.time[row]
        memory[server] += sign * rows.memory[row]


@helper
def change(layer: int, new: int, rows: Rows, graph: Graph, state: State, scratch: Scratch, count: int) -> int:
    """Give the layer another strategy: choice, busy and memory at once, bytes into ``scratch``."""
    for side in range(2):
        sign = 1.0 if side else -1.0
        if side:
            state.choice[layer] = new
        row = rows.first[layer] + state.choice[layer]
        _occupy(row, sign, rows, state)
        for i in range(rows.sent_first[row], rows.sent_first[row + 1]):
            count = _send(rows.column[i], sign * rows.amount[i], scratch, count)
        for i in range(graph.incident_first[layer], graph.incident_first[layer + 1]):
            e = graph.incident[i]
            count = _send(_edge_column(e, graph, rows, state.choice), sign * graph.amount[e], scratch, count)
    return count


@helper
def settle(fabric: Fabric, state: State, scratch: Scratch, count: int) -> bool:
    """Put the bytes noted on the arcs; False where some of them have no way."""
    load, loads = state.load, fabric.loads
    for i in range(count):
        column = scratch.touched[i]
        amount = scratch.bytes[column]
        if amount == 0.0:
            continue
        if fabric.blocked[column]:
            if amount > 0.0:
                return False
            continue
        for a in range(len(load)):
            load[a] += amount * loads[column, a]
    return True


@helper
def time_of(rows: Rows, graph: Graph, fabric: Fabric, state: State, scratch: Scratch) -> float:
    """Iteration time of the state; infinite where it does not fit into memory, or loses too much."""
    if state.error[0] > fabric.error:
        return np.inf
    busy, memory, load, done = state.busy, state.memory, state.load, scratch.done
    compute, busiest = 0.0, 0.0
    for server in range(len(busy)):
        if busy[server] > compute:
            compute = busy[server]
        if memory[server] > fabric.memory:
            return np.inf
    for a in range(len(load)):
        if load[a] > busiest:
            busiest = load[a]
    for turn in range(len(graph.order)):
        layer = graph.order[turn]
        ready = 0.0
        for i in range(graph.incident_first[layer], graph.incident_first[layer + 1]):
            e = graph.incident[i]
            if graph.target[e] == layer:
                before = done[graph.source[e]]
                if before > ready:
                    ready = before
        ready += rows.time[rows.first[layer] + state.choice[layer]]
        done[layer] = ready
        if ready > compute:
            compute = ready
    communication = busiest / fabric.bandwidth
    if not fabric.overlap:
        return compute + communication
    return communication if communication > compute else compute


@kernel(f"(i8[::1], {_ROWS}, {_GRAPH}, {_FABRIC}, {_STATE}, {_SCRATCH})")
def fill(choice: Ints, rows: Rows, graph: Graph, fabric: Fabric, state: State, scratch: Scratch) -> float:
    """Set the state to a choice from scratch; returns its time, infinite where it cannot be."""
    for a in range(len(state.load)):
        state.load[a] = 0.0
    state.error[0] = 0.0
    for server in range(len(state.busy)):
        state.busy[server] = state.memory[server] = 0.0
    count = 0
    for layer in range(len(choice)):
        state.choice[layer] = choice[layer]
        row = rows.first[layer] + choice[layer]
        _occupy(row, 1.0, rows, state)
        for i in range(rows.sent_first[row], rows.sent_first[row + 1]):
            count = _send(rows.column[i], rows.amount[i], scratch, count)
    for e in range(len(graph.source)):
        count = _send(_edge_column(e, graph, rows, choice), graph.amount[e], scratch, count)
    if not settle(fabric, state, scratch, count):
        return np.inf
    return time_of(rows, graph, fabric, state, scratch)


@helper
def _copy(source: State, target: State) -> None:
    choice, load, busy, memory = source.choice, source.load, source.busy, source.memory
    new_choice, new_load, new_busy, new_memory = target.choice, target.load, target.busy, target.memory
    for layer in range(len(choice)):
        new_choice[layer] = choice[layer]
    for a in range(len(load)):
        new_load[a] = load[a]
    for server in range(len(busy)):
        new_busy[server] = busy[server]
        new_memory[server] = memory[server]
    target.error[0] = source.error[0]


@helper
def _hand_on(rows: Rows, graph: Graph, state: State, scratch: Scratch) -> int:
    """From a random layer walk along edges and give those met the strategy of the same name, where they have it."""
    layers, seen = len(state.choice), scratch.seen
    for layer in range(layers):
        seen[layer] = False
    layer = np.random.randint(layers)
    count = 0
    while True:
        seen[layer] = True
        total = 0.0
        for i in range(graph.incident_first[layer], graph.incident_first[layer + 1]):
            e = graph.incident[i]
            if not seen[graph.source[e] + graph.target[e] - layer]:
                total += graph.amount[e]
        left = np.random.random() * total
        neighbour = -1
        for i in range(graph.incident_first[layer], graph.incident_first[layer + 1]):
            e = graph.incident[i]
            other = graph.source[e] + graph.target[e] - layer
            if not seen[other]:
                neighbour = other
                left -= graph.amount[e]
                if left < 0.0:
                    break
        if neighbour < 0:
            return count
        name = rows.name[rows.first[layer] + state.choice[layer]]
        for new in range(rows.first[neighbour + 1] - rows.first[neighbour]):
            if rows.name[rows.first[neighbour] + new] == name and new != state.choice[neighbour]:
                count = change(neighbour, new, rows, graph, state, scratch, count)
        layer = neighbour
        if np.random.random() >= CONTINUE:
            return count


@kernel(f"(f8, {_ROWS}, {_GRAPH}, {_STATE}, {_SCRATCH})")
def propose(propagation: float, rows: Rows, graph: Graph, state: State, scratch: Scratch) -> int:
    """Change the state at random, without its loads; returns how many columns are touched, -1 if nothing changes."""
    if np.random.random() < propagation:
        count = _hand_on(rows, graph, state, scratch)
        return count if count > 0 else -1
    layer = np.random.randint(len(state.choice))
    size = rows.first[layer + 1] - rows.first[layer]
    if size == 1:
        return -1
    new = np.random.randint(size - 1)
    if new >= state.choice[layer]:
        new += 1
    return change(layer, new, rows, graph, state, scratch, 0)


@kernel(f"(i8, f8, f8, {_ROWS}, {_GRAPH}, {_FABRIC}, i8[::1], f8, {_STATE}, {_STATE}, {_SCRATCH})")
def walk(
    proposals: int,
    alpha: float,
    propagation: float,
    rows: Rows,
    graph: Graph,
    fabric: Fabric,
    best: Ints,
    best_time: float,
    state: State,
    trial: State,
    scratch: Scratch,
) -> Tally:
    """Metropolis walk from ``state``; ``best`` is replaced by the best choice met.

    A slower proposal is accepted with probability exp(-alpha * its additional milliseconds).
    """
    now = time_of(rows, graph, fabric, state, scratch)
    proposed = accepted = 0
    _copy(state, trial)
    for _ in range(proposals):
        count = propose(propagation, rows, graph, trial, scratch)
        if count < 0:
            continue
        proposed += 1
        after = np.inf
        if settle(fabric, trial, scratch, count):
            after = time_of(rows, graph, fabric, trial, scratch)
        if after < now or np.random.random() < np.exp(-alpha * 1e3 * (after - now)):
            accepted += 1
            now = after
            _copy(trial, state)
            if now < best_time:
                best_time = now
                for layer in range(len(best)):
                    best[layer] = state.choice[layer]
        else:
            _copy(state, trial)
    return Tally(best_time, now, proposed, accepted)
