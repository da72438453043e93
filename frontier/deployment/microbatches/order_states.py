"""Orders of micro-batches between lists and a bound by states of a few devices."""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

from ddlopt.frontier.deployment.microbatches.few_devices import few_devices_bound
from ddlopt.frontier.deployment.microbatches.known import Known
from ddlopt.models.deployment.microbatches.bounds import require_room
from ddlopt.models.deployment.microbatches.instance import MicroBatchInstance
from ddlopt.models.deployment.microbatches.ticks import Ticks
from ddlopt.models.tolerances import ROUNDING
from ddlopt.solvers.certify import MethodOutput
from ddlopt.solvers.contracts import Limits
from ddlopt.solvers.heuristic import CertifiedMethod, Clock


@dataclass(frozen=True)
class OrderStates(CertifiedMethod, uses=()):
    """Lists and the papers' orders, and a bound by dynamic programming over the states of a few devices.

    1. The orders that need no search: by lists, and ZB-H1, ZB-H2 and ZB-V where they are defined.
    2. The bound of every device by itself (:func:`few_devices_bound`). Of one chain then that of its first device with
       each other one, of these two with whichever raised it most and each third one, and so on, until the bound meets
       the order, or one of them takes too many labels.

    Parameters
    ----------
    most_labels : int
        Of one of these programs.
    """

    most_labels: int = 300_000

    name: ClassVar[str] = "order-states"
    covers: ClassVar[type[MicroBatchInstance]] = MicroBatchInstance
    proves_infeasible: ClassVar[bool] = True

    def find(self, instance: MicroBatchInstance, limits: Limits, seed: int, clock: Clock, start: Any) -> MethodOutput:
        """An order, and the bound.

        Raises
        ------
        InfeasibleError
            If a device cannot hold one micro-batch.
        """
        require_room(instance)
        known, asked = Known(instance, clock), 0
        known.begin(start)
        best: dict[tuple[int, ...], int] = {}
        for devices in _groups(known.ticks, best):
            if known.closed or clock.expired or known.ticked is None:
                break
            high = math.ceil(known.ticked)
            low = few_devices_bound(known.ticks, devices, self.most_labels, high, lambda: clock.expired)
            asked += 1
            if low is None and len(devices) > 1:
                break
            best[devices] = low or 0
            known.raise_to(Fraction(low or 0))
        return MethodOutput(known.order, {"programs": float(asked)}, known.seconds(known.low) * (1 - ROUNDING))


def _groups(ticks: Ticks, best: dict[tuple[int, ...], int]) -> Iterator[tuple[int, ...]]:
    """Devices to look at, by what those before them have told."""
    chains = ticks.instance.chains
    line = list(dict.fromkeys(ticks.device[chunk] for chain in chains for chunk in chain))
    yield from ((device,) for device in line)
    group: tuple[int, ...] = (line[0],)
    while len(chains) == 1 and len(group) < len(line):
        larger = [(*group, device) for device in reversed(line) if device not in group]
        yield from larger
        group = max(larger, key=best.__getitem__)
