"""Schedules of collectives that others have made, as plans for a network that is given.

A reader is a function ``read(path, instance) -> Schedule``. What it reads becomes trees on the network's links, so that
the check says how long these are busy, and the bound how far from the best that is.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from importlib import import_module
from itertools import pairwise
from pathlib import Path as File

from ddlopt.models.contracts import Instance, Number
from ddlopt.models.deployment.microbatches.instance import MicroBatchInstance
from ddlopt.models.deployment.microbatches.solution import MicroBatchOrder
from ddlopt.models.errors import SolutionError, UnknownNameError, a_or_an
from ddlopt.models.topology.collective.instance import CollectiveInstance, CollectivePlan, Path, Tree
from ddlopt.models.topology.collective.paths import through_switches

_READERS = {"msccl": "msccl.read_msccl", "te-ccl": "te_ccl.read_te_ccl"}
_ORDERS = {"torch-schedule": "torch_schedule.read_torch_schedule"}
"""Likewise, of orders of micro-batches."""
FORMATS = (*_READERS, *_ORDERS)
"""What :func:`read_schedule` can read."""

Ends = tuple[int, tuple[Path, ...], tuple[Path, ...]]
"""A tree without its share: root, paths that gather, paths that spread."""


@dataclass(frozen=True)
class Schedule:
    """A plan of somebody else.

    Parameters
    ----------
    instance : CollectiveInstance or MicroBatchInstance
        What it is a plan for: the one that was given, unless the schedule has accelerators that only forward.
    plan : CollectivePlan, MicroBatchOrder or None
        None where all bytes get where they are to be, and not by trees; ``why`` says why.
    details : mapping
        What the file says besides, as ``published_s``.
    why : str
    """

    instance: CollectiveInstance | MicroBatchInstance
    plan: CollectivePlan | MicroBatchOrder | None
    details: Mapping[str, Number] = field(default_factory=dict)
    why: str = ""


def read_schedule(path: str | File, source_format: str, instance: Instance) -> Schedule:
    """Read a schedule for the collective of an instance, or an order for its micro-batches.

    Parameters
    ----------
    path : str or Path
    source_format : str
        ``msccl``: an algorithm of MSCCL as XML. ``te-ccl``: the schedule that TE-CCL writes.
        ``torch-schedule``: passes of micro-batches as ``torch.distributed.pipelining`` has them, as CSV.
    instance : CollectiveInstance or MicroBatchInstance
        Its accelerators, or devices and chunks, are the schedule's, in the same order.

    Raises
    ------
    UnknownNameError
        If there is no such format.
    SolutionError
        If the file cannot be read, is of another collective or number of accelerators, loses bytes, or is no trees; if
        a pass is missing, there twice or elsewhere.
    """
    if source_format in _ORDERS:
        if not isinstance(instance, MicroBatchInstance):
            raise SolutionError(
                f"{path}: such a schedule is for micro-batches, and '{instance.name}' is {a_or_an(instance.kind)}"
            )
        module, _, function = _ORDERS[source_format].rpartition(".")
        return Schedule(instance, getattr(import_module(f"{__name__}.{module}"), function)(path, instance))
    if source_format not in _READERS:
        raise UnknownNameError(f"there is no format '{source_format}' of schedules; there are: {', '.join(FORMATS)}")
    if not isinstance(instance, CollectiveInstance):
        raise SolutionError(
            f"{path}: a schedule is for a collective, and '{instance.name}' is {a_or_an(instance.kind)}"
        )
    module, _, function = _READERS[source_format].rpartition(".")
    found: Schedule = getattr(import_module(f"{__name__}.{module}"), function)(path, instance)
    return found


class Ways:
    """Links in place of hops between accelerators: the fastest of the direct one and ways over switches."""

    def __init__(self, instance: CollectiveInstance, origin: str) -> None:
        self._instance, self._origin = instance, origin
        _, self._paths = through_switches(instance, {link: 1 / each for link, each in instance.bandwidth.items()})

    def path(self, hops: Sequence[int]) -> Path:
        """Nodes on the way along accelerators."""
        nodes = [hops[0]]
        for i, j in pairwise(hops):
            way = self._paths[i][j]
            if not way:
                raise SolutionError(
                    f"{self._origin}: bytes go from accelerator {i} to {j}, but no link and no switches join them in "
                    f"'{self._instance.name}'"
                )
            nodes += way[1:]
        return tuple(nodes)


def plan_of(instance: CollectiveInstance, trees: Mapping[Ends, Fraction]) -> CollectivePlan:
    """The plan of trees and their shares."""
    return CollectivePlan(
        instance=instance.name,
        instance_digest=instance.digest,
        trees=tuple(
            Tree(share=str(share), root=root, gather=gather, spread=spread)
            for (root, gather, spread), share in trees.items()
        ),
    )
