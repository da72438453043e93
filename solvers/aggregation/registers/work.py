"""Batches of a register instance as the kernels take them."""

import numpy as np
import numpy.typing as npt

from ddlopt.models.aggregation.registers.batches import Merged
from ddlopt.models.aggregation.registers.instance import RegisterInstance
from ddlopt.solvers.aggregation.registers.kernels import annealing as kernels


def work_of(instance: RegisterInstance, batches: Merged, surplus: float = 0.0) -> kernels.Work:
    """Batches as the kernels take them; ``surplus`` is what counts under goal ``packets``: see ``register-search``."""
    touches = np.zeros((len(batches.batches), instance.parameters), dtype=np.bool_)
    for place, batch in enumerate(batches.batches):
        touches[place, list(batch)] = True
    start = np.concatenate([[0], np.cumsum(touches.sum(axis=0))]).astype(np.int64)
    counts = np.arange(max(map(len, batches.batches)) + 2)
    weights = batches.weights[:, None]
    if instance.goal == "packets":
        floors = batches.floors[:, None]
        table: npt.NDArray[np.float64] = surplus * weights * np.maximum(0, counts - floors)
        top = weights * np.maximum(counts, floors)
    else:
        table = weights * (counts * (counts - 1) / 2)
        top = np.zeros_like(table)
    packets = float(instance.goal == "packets")
    return kernels.Work(
        start,
        np.ascontiguousarray(np.nonzero(touches.T)[1]),
        touches,
        table,
        top,
        np.array(instance.capacities),
        1 - packets,
        packets,
    )
