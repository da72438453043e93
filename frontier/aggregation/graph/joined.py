"""What the kernels for trees found, read from the server down."""

from dataclasses import dataclass
from typing import NamedTuple, Protocol

from ddlopt.frontier.aggregation.graph.kernels.capacity import Places, RoomTables
from ddlopt.frontier.aggregation.graph.kernels.tree import Tables
from ddlopt.frontier.aggregation.graph.states import States


class Message(NamedTuple):
    """One message of a state: where it ends, and the node before; the same node where that is not known."""

    state: int
    last: int
    end: int


class Joined(Protocol):
    """Which messages end in a switch and make up a state."""

    @property
    def tables(self) -> Tables | RoomTables:
        """Costs of one message, and where it was sent from."""

    def joins(self, state: int, node: int) -> bool:
        """Whether the message of a state that a node sends is made of several."""

    def ended(self, state: int, node: int) -> list[Message]:
        """Those that it is made of, without those that start in the node."""


@dataclass(frozen=True)
class UncapacitatedMerge:
    """In any number."""

    tables: Tables
    states: States

    def joins(self, state: int, node: int) -> bool:
        """See :class:`Joined`."""
        return bool(self.tables.split[state, node] >= 0)

    def ended(self, state: int, node: int) -> list[Message]:
        """See :class:`Joined`."""
        found, rest, part = [], state, int(self.tables.split[state, node])
        while rest:
            if self.states.start[part] != node:
                found.append(Message(part, node, node))
            rest -= part
            part = int(self.tables.first[rest, node]) if rest else 0
        return found


@dataclass(frozen=True)
class CapacitatedMerge:
    """As many behind each arc as it has room for."""

    tables: RoomTables
    places: Places

    def joins(self, state: int, node: int) -> bool:
        """See :class:`Joined`."""
        return bool(self.tables.joins[state, node])

    def ended(self, state: int, node: int) -> list[Message]:
        """See :class:`Joined`."""
        found, rest, picks = [], state, self.tables.picked
        for place in range(self.places.at[node + 1] - 1, self.places.at[node] - 1, -1):
            part = int(picks[place, rest])
            if part:
                found.append(Message(part, int(self.places.tail[place]), node))
                rest, picks = rest - part, self.tables.whole
        return found
