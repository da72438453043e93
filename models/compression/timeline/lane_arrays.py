"""Options on several lanes as arrays, and the times of many plans at once."""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from ddlopt.models.compression.timeline.instance import CompressionInstance

Floats = npt.NDArray[np.float64]
Places = npt.NDArray[np.int64]


class LaneArrays(NamedTuple):
    """The options of n gradients on L lanes, padded to the longest menu of m.

    Parameters
    ----------
    ready_s : (n,) array
    encode_s, error : (n, m) arrays
        Infinite where there is no option.
    busy_s, launch_s : (n, m, L) arrays
    used : (n, m, L) array of bool
        Whether the option passes the lane.
    """

    ready_s: Floats
    encode_s: Floats
    error: Floats
    busy_s: Floats
    launch_s: Floats
    used: npt.NDArray[np.bool_]

    @property
    def stage_s(self) -> Floats:
        """(n, m, L) how long a gradient sent by itself keeps each lane busy."""
        return self.busy_s + self.launch_s

    def times_s(self, chosen: Places) -> Floats:
        """(b,) times of b plans, (b, n) choices, that fuse nothing."""
        rows = np.arange(len(self.ready_s))
        encoded = self.ready_s + np.cumsum(self.encode_s[rows, chosen], axis=1)
        stage, used = self.stage_s[rows, chosen], self.used[rows, chosen]
        free = np.zeros((len(chosen), stage.shape[2]))
        latest = encoded[:, -1].copy()
        for i in range(len(rows)):
            at = encoded[:, i]
            for lane in range(stage.shape[2]):
                left = np.maximum(at, free[:, lane]) + stage[:, i, lane]
                at = np.where(used[:, i, lane], left, at)
                free[:, lane] = np.where(used[:, i, lane], left, free[:, lane])
            latest = np.maximum(latest, at)
        return latest


def lane_arrays_of(instance: CompressionInstance) -> LaneArrays:
    """The options of an instance with lanes as arrays."""
    places = {lane: place for place, lane in enumerate(instance.lanes)}
    shape = len(instance.menus), instance.most_options
    encode, error = np.full((2, *shape), np.inf)
    busy, launch = np.zeros((2, *shape, len(places)))
    used = np.zeros((*shape, len(places)), dtype=np.bool_)
    for place, menu in enumerate(instance.menus):
        for choice, option in enumerate(menu):
            encode[place, choice], error[place, choice] = option.encode_s, option.error
            for stage in option.stages:
                at = place, choice, places[stage.lane]
                busy[at], launch[at], used[at] = stage.busy_s, stage.launch_s, True
    menus = np.array([gradient.menu for gradient in instance.gradients])
    return LaneArrays(instance.ready_s, encode[menus], error[menus], busy[menus], launch[menus], used[menus])
