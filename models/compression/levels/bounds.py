"""A lower bound on the objective of every choice of levels, without a solver."""

import numpy as np
import numpy.typing as npt

from ddlopt.models.compression.levels.instance import ExponentialCurve, LevelInstance, PointCurve
from ddlopt.models.compression.timeline.bounds import bound_of, closed_form
from ddlopt.models.compression.timeline.choices import Choices

Floats = npt.NDArray[np.float64]


def level_bound(instance: LevelInstance) -> float:
    """As on the timeline: the time with everything at its lowest level, or the least errors."""
    choices = choices_of_levels(instance)
    return bound_of(instance, closed_form(choices, choices.occupation_s))


def choices_of_levels(instance: LevelInstance) -> Choices:
    """What ``choices_of(as_timeline(instance))`` is, without the objects in between."""
    allowed = [gradient.curve.allowed for gradient in instance.gradients]
    counts = np.array([len(levels) for levels in allowed])
    there = np.arange(counts.max()) < counts[:, None]
    figures = np.full((4, *there.shape), np.inf)
    levels = np.concatenate(allowed).astype(float)
    fields = ("encode_s", "encode_s_per_level", "wire_s_per_level", "launch_s")
    encode, encode_more, wire, launch = (
        np.repeat([getattr(gradient, field) for gradient in instance.gradients], counts) for field in fields
    )
    errors = np.concatenate([_errors(gradient.curve) for gradient in instance.gradients])
    figures[:, there] = encode + encode_more * levels, wire * levels, launch, errors
    ready = np.array([gradient.ready_s for gradient in instance.gradients])
    return Choices(
        ready, figures[0], figures[1], figures[2], figures[3], counts, np.where(there, 0, -1), np.zeros(len(counts))
    )


def _errors(curve: PointCurve | ExponentialCurve) -> Floats:
    if isinstance(curve, PointCurve):
        return np.array(curve.errors)
    return curve.scale * 4.0 ** -np.array(curve.allowed)
