"""Pictures of orders of micro-batches as the papers draw them: F, B and W of every device over time."""

from typing import Any

from ddlopt.analysis.pictures.deployment.colours import BACKWARD, COLLECTIVE, FORWARD
from ddlopt.models.deployment import MicroBatchInstance, MicroBatchOrder
from ddlopt.models.deployment.microbatches.simple_order import starts_of
from ddlopt.models.deployment.microbatches.ticks import B, F, exact_ticks, words_of

_MOST_NUMBERS = 400
"""Passes with the number of their micro-batch in them; more could not be read."""


def draw(axes: Any, instance: MicroBatchInstance, solution: MicroBatchOrder) -> None:
    """Draw a row of bars for each device; later chunks of a device are paler."""
    ticks = exact_ticks(instance)
    words = words_of(ticks, solution)
    unit_s, labels = float(ticks.unit_s), set()
    for device, (word, starts) in enumerate(zip(words, starts_of(ticks, words), strict=True)):
        chunks = sorted({chunk for chunk, _ in word})
        bars: dict[tuple[int, int], list[tuple[float, float]]] = {}
        for kind, start in zip(word, starts, strict=True):
            begin_s, took_s = start * unit_s, ticks.time[kind] * unit_s
            own = bars.setdefault(kind, [])
            if instance.size <= _MOST_NUMBERS and took_s:
                axes.text(begin_s + took_s / 2, device, str(len(own)), ha="center", va="center", fontsize=6)
            own.append((begin_s, took_s))
        for kind, own in bars.items():  # at once: limits of the axes are sought at each call
            name, colour = {F: ("F", FORWARD), B: ("B", BACKWARD)}.get(kind[1], ("W", COLLECTIVE))
            axes.broken_barh(
                own,
                (device - 0.4, 0.8),
                facecolors=colour,
                edgecolors="white",
                linewidth=0.4,
                alpha=1 - 0.45 * chunks.index(kind[0]) / max(1, len(chunks) - 1),
                label=None if name in labels else name,
            )
            labels.add(name)
    axes.set_yticks(range(instance.devices), [f"device {device}" for device in range(instance.devices)])
    axes.invert_yaxis()
    axes.set_xlabel("time (s)", fontsize=8)
    axes.tick_params(labelsize=7)
    axes.legend(fontsize=7, loc="upper center", bbox_to_anchor=(0.5, -0.15), ncols=3)
