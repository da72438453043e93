"""Switches split off: links between accelerators in their place, over which trees are as good as before.

A switch only forwards, so each byte that enters leaves once. Replacing u -> w -> t by a link u -> t keeps what can
arrive everywhere as long as no set of nodes then lets out less than it has to (Mader's splitting off; with as much
capacity into a switch as out of it, all of it can be replaced). Numbers are whole: capacities and trees of each root.

For a switch whose links are the same both ways a shift of the nodes around it is tried first: all that u sends to the
switch goes to the node some places further on. That takes a maximum flow for each accelerator, where pair by pair takes
two for each accelerator and pair.
"""

from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from ddlopt.models.errors import NoSolutionError
from ddlopt.models.topology.collective.instance import Arc, Path
from ddlopt.models.topology.collective.kernels import Ints, least_arriving, spare


@dataclass
class Split:
    """A network of whole capacities, part of which are paths through switches that are gone.

    Parameters
    ----------
    network : (n, n) int array
    accelerators : int
    counts : (accelerators,) int array
        Trees that are to start at each.
    expired : callable
        Whether the time is up.
    paths : mapping
        Of each pair of nodes, the paths that its capacity stands for, the link itself or through switches that are
        gone, with how much of it.
    """

    network: Ints
    accelerators: int
    counts: Ints
    expired: Callable[[], bool]
    paths: dict[Arc, list[tuple[Path, int]]] = field(default_factory=lambda: defaultdict(list))

    def __post_init__(self) -> None:
        for i, j in np.argwhere(self.network).tolist():
            self.paths[i, j].append(((i, j), int(self.network[i, j])))

    @property
    def wanted(self) -> int:
        """What has to arrive at each accelerator."""
        return int(self.counts.sum())

    def off(self) -> None:
        """Split all switches off.

        Raises
        ------
        NoSolutionError
            If one has not as much capacity in as out, or the time is up.
        """
        for switch in range(self.accelerators, len(self.network)):
            if self.network[switch].sum() != self.network[:, switch].sum():
                raise NoSolutionError(
                    f"as much has to lead into switch {switch} as out of it, for trees to attain the cut's bound"
                )
        for switch in sorted(
            range(self.accelerators, len(self.network)), key=lambda each: int((self.network[each] > 0).sum())
        ):
            if not self._shifted(switch):
                self._pair_by_pair(switch)

    def _shifted(self, switch: int) -> bool:
        """Whether some shift of the nodes around a switch keeps all that has to arrive; then it is made."""
        ports = np.flatnonzero(self.network[switch])
        same = np.array_equal(self.network[switch], self.network[:, switch])
        if not same or len(set(self.network[switch, ports].tolist())) != 1 or len(ports) < 2:
            return False
        count, amount = len(ports), int(self.network[switch, ports[0]])
        for shift in sorted({1, *(count // part for part in range(2, count + 1) if count % part == 0)}):
            tried = self.network.copy()
            tried[switch] = 0
            tried[:, switch] = 0
            ends = [(int(u), int(ports[(place + shift) % count])) for place, u in enumerate(ports)]
            for u, t in ends:
                tried[u, t] += amount
            if least_arriving(tried, self.accelerators, self.counts, self.wanted) == self.wanted:
                for u, t in ends:
                    self._replace(u, switch, t, amount)
                return True
            if self.expired():
                raise NoSolutionError("the time was up before switches were split off")
        return False

    def _pair_by_pair(self, switch: int) -> None:
        for u in np.flatnonzero(self.network[:, switch]).tolist():
            heads = np.flatnonzero(self.network[switch]).tolist()
            # Back to where it came from last: that only gives capacity away.
            for t in sorted(heads, key=lambda each: (each == u, (each - u) % len(self.network))):
                most = int(min(self.network[u, switch], self.network[switch, t]))
                if most == 0:
                    continue
                amount = spare(self.network, self.accelerators, self.counts, self.wanted, u, switch, t, most)
                if amount > 0:
                    self._replace(u, switch, t, amount)
                if self.expired():
                    raise NoSolutionError("the time was up before switches were split off")

    def _replace(self, u: int, switch: int, t: int, amount: int) -> None:
        """Take ``amount`` of u -> switch and switch -> t, and give it to u -> t with the paths that it stands for."""
        first, second = self.take(u, switch, amount), self.take(switch, t, amount)
        self.network[u, switch] -= amount
        self.network[switch, t] -= amount
        if u == t:
            return
        self.network[u, t] += amount
        while first and second:
            (one, size), (other, more) = first.pop(), second.pop()
            both = min(size, more)
            self.paths[u, t].append((one + other[1:], both))
            if size > both:
                first.append((one, size - both))
            if more > both:
                second.append((other, more - both))

    def take(self, i: int, j: int, amount: int) -> list[tuple[Path, int]]:
        """Paths between two nodes for ``amount`` of the capacity, which are then taken."""
        kept, found, left = self.paths[i, j], list[tuple[Path, int]](), amount
        while left:
            path, size = kept.pop()
            used = min(size, left)
            found.append((path, used))
            if size > used:
                kept.append((path, size - used))
            left -= used
        return found
