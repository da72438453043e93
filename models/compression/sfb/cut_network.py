"""The cut network of a sufficient-factor instance, whose minimum cuts are its optimal selections without budgets."""

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from ddlopt.models.compression.sfb.instance import SfbInstance
from ddlopt.models.max_flow import FlowNetwork

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]

_BITS = 60
"""All all-reduces together in units of the grid: below two to this."""


@dataclass(frozen=True)
class Cut:
    """What a minimum cut says.

    Parameters
    ----------
    duplicated : (n,) bool array
    bound_s : float
        Lower bound on the cost of every selection; below that of ``duplicated`` by rounding only.
    """

    duplicated: Bools
    bound_s: float


@dataclass(frozen=True, eq=False)
class CutNetwork:
    """The cut network of an instance, prepared once for any number of cost vectors.

    Parameters
    ----------
    instance : SfbInstance
        Its graph, ``broadcast`` and ``eligible`` count here; its costs and budgets do not.
    """

    instance: SfbInstance

    @cached_property
    def _network(self) -> tuple[FlowNetwork, Ints, Ints]:
        """The network, with arcs source -> i, i -> sink, one for each edge, and shared tensor -> its producer.

        Then the tensor that each edge pays, -1 where it leads to a shared tensor, and the shared tensors: those with a
        node of their own.
        """
        instance, n = self.instance, self.instance.size
        (tensor, consumer), producers = instance.edges, instance.producers
        uses = np.bincount(tensor, minlength=len(producers))
        apart = (uses > 1) & (instance.broadcast == "per_tensor")
        shared = np.flatnonzero(apart)
        node_of = np.zeros(len(producers), dtype=np.int64)
        node_of[shared] = n + np.arange(len(shared))
        source, sink, operators = n + len(shared), n + len(shared) + 1, np.arange(n)
        tails = (np.full(n, source), operators, consumer, node_of[shared])
        heads = (operators, np.full(n, sink), np.where(apart, node_of, producers)[tensor], producers[shared])
        network = FlowNetwork(sink + 1, np.concatenate(tails), np.concatenate(heads), source, sink)
        return network, np.where(apart[tensor], -1, tensor), shared

    @property
    def figures(self) -> dict[str, int]:
        """Size of the network, which is built now if it was not yet."""
        network, _, _ = self._network
        return {"nodes": network.nodes, "arcs": len(network.tails)}

    def cut(
        self,
        extra_s: Floats | None = None,
        sync_s: Floats | None = None,
        broadcast_s: Floats | None = None,
        largest: bool = False,
    ) -> Cut:
        """A selection of least cost; costs that are not given are the instance's.

        Parameters
        ----------
        extra_s : (n,) float array, optional
            What duplicating an operator costs. Default: with the penalty.
        sync_s : (n,) float array, optional
            What not duplicating it costs.
        broadcast_s : (number of tensors,) float array, optional
            What broadcasting a tensor costs. None of the costs may be negative.
        largest : bool
            Of several optimal selections, take the one with the most duplicated operators, not that with the fewest.
            Each of the two is unique; which selections are optimal is told up to the grid.

        Returns
        -------
        Cut

        Raises
        ------
        ValueError
            If a cost is negative.
        """
        instance = self.instance
        extra_s = instance.extra_s + instance.duplication_penalty_s if extra_s is None else extra_s
        sync_s = instance.sync_s if sync_s is None else sync_s
        broadcast_s = instance.broadcast_s if broadcast_s is None else broadcast_s
        if any((each < 0).any() for each in (extra_s, sync_s, broadcast_s)):
            raise ValueError("a cost is negative; all must be at least 0")
        network, paying, shared = self._network
        total = float(sync_s.sum()) or 1.0
        grid = math.frexp(total)[1] - _BITS
        # Rounded down, so that every cut in units of the grid is at most the true one. What is more than all
        # all-reduces is as good as endless: duplicating nothing costs no more than they do.
        sync = _in_units(sync_s, grid)
        extra, broadcast = (_in_units(np.minimum(each, 2 * total), grid) for each in (extra_s, broadcast_s))
        endless = int(sync.sum()) + 1
        extra = np.where(instance.eligible, np.minimum(extra, endless), endless)
        # Source -> i -> sink is a path of its own.
        both = np.minimum(sync, extra)
        edges = np.append(broadcast, endless)[paying]
        found = network.minimum_cut(np.concatenate((sync - both, extra - both, edges, broadcast[shared])), largest)
        return Cut(found.source_side[: instance.size], _rounded_down(int(both.sum()) + found.value, grid))


def minimum_cut(
    instance: SfbInstance,
    extra_s: Floats | None = None,
    sync_s: Floats | None = None,
    broadcast_s: Floats | None = None,
    largest: bool = False,
) -> Cut:
    """A selection of least cost for one set of costs; see :meth:`CutNetwork.cut`."""
    return CutNetwork(instance).cut(extra_s, sync_s, broadcast_s, largest)


def _in_units(values: Floats, grid: int) -> Ints:
    """Whole units of 2^grid; exact but for the rounding down."""
    units: Ints = np.floor(np.ldexp(values, -grid)).astype(np.int64)
    return units


def _rounded_down(units: int, grid: int) -> float:
    """Units of 2^grid as a float that is not larger."""
    nearest = math.ldexp(float(units), grid)
    return nearest if int(float(units)) <= units else math.nextafter(nearest, 0.0)
