"""Numba kernels of rules that see only the past: each goes through a trajectory once and gives the times of sends."""

# mypy: disable-error-code="untyped-decorator, no-any-return"

import numpy as np

from ddlopt.models.kernels import kernel
from ddlopt.solvers.gossip.exchange.kernels.dynamic_program import Floats, Ints, apart


@kernel("(const(f8[:, ::1]), f8, const(f8[::1]), b1)")
def by_distance(points: Floats, level: float, scales: Floats, relative: bool) -> Ints:
    """Send where the distance from the model sent last exceeds ``level * scales[t]``, and its norm, if ``relative``."""
    steps, width = points.shape
    times, count, last = np.empty(steps, np.int64), 0, 0
    for t in range(1, steps):
        limit = level * scales[t]
        if relative:
            norm = 0.0
            for k in range(width):
                norm += points[last, k] * points[last, k]
            limit *= np.sqrt(norm)
        if apart(points, t, last, True) > limit:
            times[count] = t
            count += 1
            last = t
    return times[:count]


@kernel("(const(f8[:, ::1]), f8, b1)")
def by_sum(points: Floats, level: float, plain: bool) -> Ints:
    """Send where staleness since the last send, with this step's, exceeds the level."""
    steps = len(points)
    times, count, last, total = np.empty(steps, np.int64), 0, 0, 0.0
    for t in range(1, steps):
        total += apart(points, t, last, plain)
        if total > level:
            times[count] = t
            count += 1
            last, total = t, 0.0
    return times[:count]


@kernel("(const(f8[:, ::1]), f8, f8)")
def by_speed(points: Floats, level: float, power: float) -> Ints:
    """Send where the distance from the model sent last exceeds ``level * speed ** power``.

    The speed is the mean of the distances per step between the last two sends and since the last one.
    """
    steps = len(points)
    times, count, last, earlier = np.empty(steps, np.int64), 0, 0, -1.0
    for t in range(1, steps):
        distance = apart(points, t, last, True)
        speed = distance / (t - last)
        if earlier >= 0.0:
            speed = 0.5 * (speed + earlier)
        if distance > level * speed**power:
            times[count] = t
            count += 1
            last, earlier = t, speed
    return times[:count]


@kernel("(const(f8[:, ::1]), f8, const(i8[::1]))")
def by_norms(points: Floats, level: float, tensors: Ints) -> Ints:
    """Send where the norm of a tensor has changed by ``level`` times its usual change in a step.

    That is the mean of the last two slopes: change of norm over steps between sends. Tensor k has the columns from
    ``tensors[k]`` to ``tensors[k + 1]``. The first slopes are those of step 1, where the model is sent.
    """
    steps, parts = len(points), len(tensors) - 1
    times, count, last = np.empty(steps, np.int64), 0, 0
    sent, slopes, older, now = np.zeros(parts), np.zeros(parts), np.zeros(parts), np.zeros(parts)
    for t in range(steps):
        for k in range(parts):
            total = 0.0
            for column in range(tensors[k], tensors[k + 1]):
                total += points[t, column] * points[t, column]
            now[k] = np.sqrt(total)
        due = t == 1
        for k in range(parts):
            due |= t > 1 and abs(now[k] - sent[k]) > level * 0.5 * (slopes[k] + older[k])
        if t == 0 or due:
            for k in range(parts):
                if t > 0:
                    older[k] = slopes[k] if t > 1 else abs(now[k] - sent[k])
                    slopes[k] = abs(now[k] - sent[k]) / (t - last)
                sent[k] = now[k]
        if t > 0 and due:
            times[count] = t
            count += 1
            last = t
    return times[:count]
