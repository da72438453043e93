"""Placements in register arrays for batches of a click log that follows Zipf's law: kind ``registers-zipf``."""

import math

import numpy as np

from ddlopt.instances.options import at_least, one_of
from ddlopt.instances.workloads.sparse_batches import CRITEO_SAMPLE, zipf_batches
from ddlopt.models.aggregation.registers.instance import RegisterInstance
from ddlopt.models.errors import OptionError


def zipf(
    rng: np.random.Generator,
    parameters: int = 24,
    arrays: int = 8,
    entries: int | None = None,
    capacity: float = 1.5,
    batches: int = 40,
    held_out: int = 40,
    rows: int = 5,
    vocabulary: int | None = None,
    goal: str = "packets",
) -> RegisterInstance:
    """The parameters that the most batches touch, of batches as :mod:`~ddlopt.instances.workloads.sparse_batches` has.

    Parameters
    ----------
    rng : numpy.random.Generator
    parameters : int
        How many are hot; counted over the batches that are not held out.
    arrays : int
    entries : int, optional
        Values in a packet; without, as many as arrays.
    capacity : float
        Of all arrays together, relative to the parameters; rounded to whole parameters an array, up where need be.
    batches, held_out : int
        For the objective, and for the check alone.
    rows : int
        Of the click log in a batch.
    vocabulary : int, optional
        Parameters of the whole model, hot or not; without, those of the public Criteo sample's fit.
    goal : {"packets", "collisions"}

    Returns
    -------
    RegisterInstance
        Parameters are numbered from the hottest on.
    """
    for option, value in (("parameters", parameters), ("arrays", arrays), ("batches", batches), ("rows", rows)):
        at_least(option, value, 1)
    at_least("held_out", held_out, 0)
    at_least("capacity", capacity, 1)
    one_of("goal", goal, ("packets", "collisions"))
    model = CRITEO_SAMPLE if vocabulary is None else CRITEO_SAMPLE.of_size(vocabulary)
    drawn = zipf_batches(rng, batches + held_out, rows, model)
    touches = np.bincount(np.concatenate(drawn[:batches]), minlength=model.parameters)
    touched = int((touches > 0).sum())
    if touched < parameters:
        raise OptionError(
            f"parameters is {parameters}, but the batches touch {touched}; raise batches or rows, or lower parameters"
        )
    hottest = np.argsort(-touches, kind="stable")[:parameters]
    place = {int(parameter): number for number, parameter in enumerate(hottest)}
    hot = [sorted(place[int(i)] for i in batch if int(i) in place) for batch in drawn]
    return RegisterInstance.from_data(
        {
            "name": f"registers-zipf-n{parameters}-r{arrays}-b{batches}",
            "parameters": parameters,
            "arrays": arrays,
            "capacity": math.ceil(max(parameters / arrays, capacity * parameters / arrays - 0.5)),
            "entries": arrays if entries is None else entries,
            "batches": hot[:batches],
            "held_out": hot[batches:],
            "goal": goal,
        }
    )
