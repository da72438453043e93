"""The same rank, number of bits or density for every gradient: what it means where gradients differ."""

import math

import numpy as np

from ddlopt.models.compression.levels.arrays import Floats, LevelArrays, Places
from ddlopt.models.compression.levels.instance import GradedGradient, LevelInstance
from ddlopt.models.tolerances import TINY


def uniform_coordinates(instance: LevelInstance) -> Floats:
    """(n, m) what stands for a level: the rank, bits or part of the entries, over the compressor's largest."""
    arrays = LevelArrays(instance)
    counted: Floats = arrays.levels / np.array([[_whole(each)] for each in instance.gradients])
    compressors = np.array([each.compressor for each in instance.gradients])
    for compressor in np.unique(compressors):
        rows = compressors == compressor
        counted[rows] /= max(float(counted[rows].max()), TINY)
    return counted


def uniform_places(arrays: LevelArrays, coordinates: Floats, part: float) -> Places:
    """(n,) places of the highest level that is no more than ``part``; the lowest where there is none."""
    found: Places = np.clip((coordinates <= part).sum(axis=1), 1, arrays.counts) - 1
    return found


def _whole(gradient: GradedGradient) -> float:
    return float(math.prod(gradient.shape)) if gradient.compressor in ("top_k", "random_k") else 1.0
