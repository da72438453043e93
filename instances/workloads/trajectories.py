"""Trajectories of a model in training: recorded of a small network, and drawn."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from ddlopt.instances.workloads.digits import Floats, Perceptron, images
from ddlopt.models.tolerances import ROUNDING


class Recorded(NamedTuple):
    """Points (T, d), columns of each tensor, learning rates (T,); squared lengths of all steps, here and in truth."""

    points: Floats
    blocks: tuple[int, ...]
    rates: Floats
    moved: float
    truly_moved: float


def recorded(
    rng: np.random.Generator, widths: Sequence[int], steps: int, batch: int, rate: float, decay: float, axes: int
) -> Recorded:
    """A perceptron on handwritten digits, before each of ``steps`` steps of SGD of one worker.

    Parameters
    ----------
    widths : sequence of int
        Inputs, hidden layers, classes.
    steps, batch : int
    rate, decay : float
        The learning rate in step t is ``rate / (1 + t / decay)``.
    axes : int
        Columns that each tensor is reduced to; from ``steps`` on, distances are kept.
    """
    pixels, digits, _, _ = images()
    network = Perceptron.fresh(rng, widths)
    rates = rate / (1.0 + np.arange(steps) / decay)
    seen: list[list[Floats]] = [[] for _ in network.parameters]
    for step in range(steps):
        for place, parameter in enumerate(network.parameters):
            seen[place].append(parameter.ravel().copy())
        drawn = rng.choice(len(digits), batch, replace=False)
        network.step(network.gradients(pixels[drawn], digits[drawn]), float(rates[step]))
    found, truly = [], 0.0
    for rows in seen:
        tensor = np.array(rows)
        truly += float((np.diff(tensor, axis=0) ** 2).sum())
        found.append(_reduced(rng, tensor, axes))
    points = np.concatenate(found, axis=1)
    moved = float((np.diff(points, axis=0) ** 2).sum())
    return Recorded(points, tuple(each.shape[1] for each in found), rates, moved, truly)


def _reduced(rng: np.random.Generator, rows: Floats, axes: int) -> Floats:
    """(T, d') rows in ``axes`` columns, or all that it takes to keep distances.

    The first column is along the first row, so that norms are kept; then come principal axes of the movement beside it.
    In full, that is a rotation. Otherwise half of the columns are such, and what they leave out, which is mostly noise
    in many directions, is projected on as many random ones and scaled, so that distances are kept on average.
    """
    norm = float(np.linalg.norm(rows[0]))
    first = rows[0] / norm if norm > 0 else np.zeros_like(rows[0])
    along = rows @ first
    beside = rows - np.outer(along, first)
    _, values, vectors = np.linalg.svd(beside, full_matrices=False)
    vectors = vectors[values > ROUNDING * values.max()] if values.max() > 0 else vectors[:0]
    whole = len(vectors) + (norm > 0) <= axes
    count = len(vectors) if whole else max(0, axes // 2 - (norm > 0))
    # The sign of an axis is arbitrary; its largest entry is positive.
    signs = np.sign(vectors[np.arange(len(vectors)), np.abs(vectors).argmax(axis=1)])
    chosen = (vectors * signs[:, np.newaxis])[:count].T
    columns = [along[:, np.newaxis]] if norm > 0 else []
    columns.append(beside @ chosen)
    if not whole:
        left = axes - axes // 2
        drawn, _ = np.linalg.qr(rng.standard_normal((rows.shape[1], left)))
        columns.append((beside - beside @ chosen @ chosen.T) @ drawn * np.sqrt(rows.shape[1] / left))
    return np.concatenate(columns, axis=1)


def drifting(
    rng: np.random.Generator, steps: int, width: int, decay: float, power: float, noise: float, pull: float
) -> Floats:
    """(T, d) a walk with a drift whose direction turns slowly, noise, and both slower with time.

    The speed in step t is :math:`(1 + t / decay)^{-power}`; each step has a drift of that length in directions of an
    orthant, and noise of ``noise`` times that length; ``pull`` is the part of the way back to the drift's path that
    noise goes in every step, 0 for a random walk.
    """
    speed = (1.0 + np.arange(steps - 1) / decay) ** -power
    turned = np.linspace(0.0, 1.0, steps - 1)[:, np.newaxis]
    start, end = np.abs(rng.standard_normal((2, width)))
    direction = (1.0 - turned) * start + turned * end
    direction /= np.linalg.norm(direction, axis=1)[:, np.newaxis]
    path = np.concatenate((np.zeros((1, width)), np.cumsum(speed[:, np.newaxis] * direction, axis=0)))
    shaken = np.zeros((steps, width))
    drawn = noise / np.sqrt(width) * speed[:, np.newaxis] * rng.standard_normal((steps - 1, width))
    for t in range(1, steps):
        shaken[t] = (1.0 - pull) * shaken[t - 1] + drawn[t - 1]
    return path + shaken
