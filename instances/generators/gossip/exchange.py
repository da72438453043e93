"""Instances of the problem ``exchange``: trajectories that are recorded of training, or drawn."""

from typing import Literal, cast

import numpy as np

from ddlopt.instances.options import at_least, one_of, part, positive
from ddlopt.instances.workloads.digits import WIDTHS
from ddlopt.instances.workloads.trajectories import drifting, recorded
from ddlopt.models.errors import OptionError
from ddlopt.models.gossip.exchange.instance import ExchangeInstance, Floats

_DIGITS = 6
"""Significant digits of the coordinates, of the largest one."""
# Of scikit-learn's 1797 digits, those that are not held out.
_IMAGES = 1437
_HIDDEN = {"mlp": (32,), "logistic": ()}


def drift(
    rng: np.random.Generator,
    steps: int = 1000,
    width: int = 8,
    sends: int | None = None,
    send_cost: float | None = None,
    decay: float = 200.0,
    power: float = 1.0,
    noise: float = 1.0,
    pull: float = 0.0,
    norm: str = "squared",
) -> ExchangeInstance:
    """A walk with drift and noise that slows down.

    Parameters
    ----------
    steps, width : int
        T and d.
    sends : int, optional
        The budget; a step in twenty where no price is given either.
    send_cost : float, optional
        A price in place of the budget.
    decay, power : float
        The speed in step t is (1 + t / decay) ** -power.
    noise : float
        Length of a step's noise over that of its drift.
    pull : float
        Part of the way back to the drift's path that noise goes in every step; 0: a random walk.
    norm : {"squared", "plain"}
    """
    at_least("width", width, 1)
    positive("decay", decay)
    at_least("power", power, 0)
    at_least("noise", noise, 0)
    part("pull", pull)
    at_least("steps", steps, 2)
    points = drifting(rng, steps, width, decay, power, noise, pull)
    return _instance(f"drift-t{steps}", points, sends, send_cost, norm)


def digits(
    rng: np.random.Generator,
    model: str = "mlp",
    steps: int = 600,
    sends: int | None = None,
    send_cost: float | None = None,
    batch: int = 16,
    rate: float = 0.3,
    decay: float = 200.0,
    axes: int = 8,
    norm: str = "squared",
) -> ExchangeInstance:
    """One worker's SGD on scikit-learn's digits, recorded.

    Parameters
    ----------
    model : {"mlp", "logistic"}
        A perceptron of 64-32-10, or without a hidden layer.
    steps, batch : int
        Steps of training, and images of a step.
    sends : int, optional
        The budget; a step in twenty where no price is given either.
    send_cost : float, optional
        A price in place of the budget.
    rate, decay : float
        The learning rate in step t is rate / (1 + t / decay).
    axes : int
        Columns that each tensor is reduced to: half of them principal axes, half random ones; from ``steps`` on,
        distances are kept.
    norm : {"squared", "plain"}

    Raises
    ------
    OptionError
        If scikit-learn is not installed.
    """
    one_of("model", model, tuple(_HIDDEN))
    at_least("steps", steps, 2)
    at_least("batch", batch, 1)
    if batch > _IMAGES:
        raise OptionError(f"batch is {batch}; there are {_IMAGES} images")
    positive("rate", rate)
    positive("decay", decay)
    at_least("axes", axes, 2)
    widths = (WIDTHS[0], *_HIDDEN[model], WIDTHS[-1])
    taken = recorded(rng, widths, steps, batch, rate, decay, axes)
    made = _instance(f"digits-{model}-t{steps}", taken.points, sends, send_cost, norm)
    told = (
        f"perceptron of {'-'.join(map(str, widths))} on scikit-learn's digits (UCI optical recognition of handwritten "
        f"digits), each tensor in at most {axes} columns; squared lengths of its steps come to {taken.moved:.4g}, of "
        f"all parameters' to {taken.truly_moved:.4g}"
    )
    rates = tuple(float(f"{each:.6g}") for each in taken.rates.tolist())
    more = {"source": told, "blocks": taken.blocks, "rates": rates}
    return ExchangeInstance.from_data({**dict(made), **more})


def _instance(name: str, points: Floats, sends: int | None, send_cost: float | None, norm: str) -> ExchangeInstance:
    one_of("norm", norm, ("squared", "plain"))
    if sends is not None and send_cost is not None:
        raise OptionError(f"sends is {sends} and send_cost is {send_cost:g}; give one of them")
    if sends is not None:
        at_least("sends", sends, 0)
    elif send_cost is None:
        sends = len(points) // 20
    else:
        positive("send_cost", send_cost)
    places = _DIGITS - 1 - int(np.floor(np.log10(np.abs(points).max() or 1.0)))
    return ExchangeInstance(
        name=name,
        points=np.round(points, places),
        sends=sends,
        send_cost=send_cost,
        norm=cast(Literal["squared", "plain"], norm),
    )
