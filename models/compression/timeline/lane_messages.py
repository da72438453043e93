"""The messages that a timeline with lanes may send: gradients in a row that take options of one label."""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from ddlopt.models.compression.timeline.candidate_messages import Key
from ddlopt.models.compression.timeline.instance import CompressionInstance, Option
from ddlopt.models.compression.timeline.units import excess_room

Floats = npt.NDArray[np.float64]
Places = npt.NDArray[np.int64]


class LaneMessages(NamedTuple):
    """Messages by first and last gradient and option.

    Parameters
    ----------
    first, last, option : (k,) arrays of int
        ``option`` is the place in the menu of the first gradient; the others take theirs of the same label.
    encode_s, excess : (k,) arrays
        Of all the gradients; the error is that beyond the least.
    stage_s : (k, L) array
        How long each lane is kept: all gradients, and the longest launch.
    used : (k, L) array of bool
        Which lanes it passes.
    """

    first: Places
    last: Places
    option: Places
    encode_s: Floats
    excess: Floats
    stage_s: Floats
    used: npt.NDArray[np.bool_]

    @property
    def keys(self) -> list[Key]:
        """(first, last, option) of each."""
        return list(zip(self.first.tolist(), self.last.tolist(), self.option.tolist(), strict=True))


def lane_messages_of(instance: CompressionInstance, most: int | None = None) -> LaneMessages | None:
    """All messages but those that exceed the error budget where all other gradients have their least error.

    Parameters
    ----------
    most : int, optional
        None is returned where there are more.
    """
    room = excess_room(instance)
    places = {lane: place for place, lane in enumerate(instance.lanes)}
    least = [min(option.error for option in menu) for menu in instance.menus]
    by_label = [{option.label: option for option in menu} for menu in instance.menus]
    rows: list[tuple[int, int, int, float, float]] = []
    stages, used = [], []
    for first, gradient in enumerate(instance.gradients):
        for place, option in enumerate(instance.menus[gradient.menu]):
            encode = excess = bytes_ = 0.0
            busy, launch = np.zeros((2, len(places)))
            passed = np.zeros(len(places), dtype=np.bool_)
            for last in range(first, instance.size if instance.fusion else first + 1):
                menu = instance.gradients[last].menu
                each = by_label[menu].get(option.label)
                bytes_ += 4 * instance.gradients[last].elements
                if each is None or (last > first and _too_large(instance, bytes_)):
                    break
                encode, excess = encode + each.encode_s, excess + each.error - least[menu]
                _pass(each, places, busy, launch, passed)
                if room is not None and excess > room:
                    break
                rows.append((first, last, place, encode, excess))
                stages.append(busy + launch)
                used.append(passed.copy())
                if most is not None and len(rows) > most:
                    return None
    keys, figures = np.array([row[:3] for row in rows]), np.array([row[3:] for row in rows])
    return LaneMessages(
        keys[:, 0], keys[:, 1], keys[:, 2], figures[:, 0], figures[:, 1], np.array(stages), np.array(used)
    )


def _too_large(instance: CompressionInstance, bytes_: float) -> bool:
    return instance.largest_bucket_bytes is not None and bytes_ > instance.largest_bucket_bytes


def _pass(option: Option, places: dict[str, int], busy: Floats, launch: Floats, passed: npt.NDArray[np.bool_]) -> None:
    """Add a gradient's stages to those of its message."""
    for stage in option.stages:
        lane = places[stage.lane]
        busy[lane] += stage.busy_s
        launch[lane] = max(launch[lane], stage.launch_s)
        passed[lane] = True
