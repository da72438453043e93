"""Picture of a placement in register arrays: how many parameters of each batch every array has."""

from typing import Any

import numpy as np
from matplotlib.colors import BoundaryNorm, ListedColormap

from ddlopt.models.aggregation.registers.instance import Placement, RegisterInstance

_COLOURS = ("#f7f7f7", "#c6dbef", "#6baed6", "#2171b5", "#08306b", "#fdae61", "#d7191c")


def draw(axes: Any, instance: RegisterInstance, solution: Placement) -> None:
    """Arrays over batches, those with the most parameters first; a red mark where a batch takes more than its floor."""
    arrays = np.array(solution.arrays)
    order = sorted(range(len(instance.batches)), key=lambda t: -len(instance.batches[t]))
    counts = np.array([np.bincount(arrays[list(instance.batches[t])], minlength=instance.arrays) for t in order]).T
    most = max(1, int(counts.max()))
    colours = ListedColormap([_COLOURS[min(c, len(_COLOURS) - 1)] for c in range(most + 1)])
    image = axes.imshow(counts, aspect="auto", cmap=colours, norm=BoundaryNorm(np.arange(most + 2) - 0.5, most + 1))
    floors = np.array([-(-len(instance.batches[t]) // instance.entries) for t in order])
    over = np.flatnonzero(counts.max(axis=0) > floors)
    axes.plot(over, np.full(len(over), -0.9), "v", color="#d7191c", markersize=4, clip_on=False)
    axes.figure.colorbar(image, ax=axes, ticks=range(most + 1), label="parameters of the batch in the array")
    packets = int(np.maximum(floors, counts.max(axis=0)).sum())
    axes.set_title(
        f"{packets} packets; at best {int(floors.sum())}; \u25be collisions cost a packet", fontsize=9, pad=12
    )
    axes.set_xlabel("batches, large ones first")
    axes.set_ylabel("register array")
    axes.set_yticks(range(instance.arrays) if instance.arrays <= 32 else range(0, instance.arrays, 8))
    axes.tick_params(labelsize=7)
