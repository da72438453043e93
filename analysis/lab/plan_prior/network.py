"""The small graph network behind the learned prior, forward only; ``train_small`` beside it trains it."""

from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from typing import IO

import numpy as np
import numpy.typing as npt

from ddlopt.analysis.lab.plan_prior.features import Features
from ddlopt.models.errors import OptionError

Floats = npt.NDArray[np.float64]
Weights = Mapping[str, npt.NDArray[np.floating]]

# Width of the network; the weights in the package are for this one.
HIDDEN = 32
# Of message passing; the weights in the package are for three.
ROUNDS = 3
WEIGHTS = "prior_weights.npz"
TRAINING = "python -m ddlopt.analysis.lab.plan_prior.train_small"
MADE_BY = "made by"
"""Entry of a file of weights that is no weight: the command that made it."""


def probabilities(weights: Weights, features: Features) -> Floats:
    r"""(groups, actions) probabilities.

    With X the nodes, A the edges and F the actions,

    .. math:: H_0 = \sigma(X W_0 + b_0), \quad H_{k+1} = H_k + \sigma(H_k U_k + A H_k V_k + b_k), \quad
       s_{ga} = \sigma([H_g, \bar H, F_{ga}]\, P + p)\, q,

    where :math:`\sigma` is the rectifier and :math:`\bar H` the mean over the groups; the softmax of s over actions.
    """
    hidden = _rectified(features.nodes @ weights["W"] + weights["b"])
    for k in range(ROUNDS):
        told = features.edges @ hidden
        hidden = hidden + _rectified(hidden @ weights[f"U{k}"] + told @ weights[f"V{k}"] + weights[f"b{k}"])
    context = np.concatenate([hidden, np.broadcast_to(hidden.mean(axis=0), hidden.shape)], axis=1)
    own = context @ weights["P"][: 2 * HIDDEN]
    scores = _rectified(own[:, None, :] + features.actions @ weights["P"][2 * HIDDEN :] + weights["p"]) @ weights["q"]
    scores = np.exp(scores - scores.max(axis=1, keepdims=True))
    probability: Floats = scores / scores.sum(axis=1, keepdims=True)
    return probability


def _rectified(values: Floats) -> Floats:
    positive: Floats = np.maximum(values, 0)
    return positive


@cache
def trained(name: str = WEIGHTS) -> dict[str, npt.NDArray[np.floating]]:
    """The weights that come with the package.

    Raises
    ------
    OptionError
        If there are none.
    """
    file = files("ddlopt.analysis.lab.plan_prior").joinpath(name)
    if not file.is_file():
        raise OptionError(
            "the learned prior has no weights: python -m ddlopt.analysis.lab.plan_prior.train_small makes them"
        )
    with file.open("rb") as stream:
        return weights_in(stream)


def weights_in(stream: IO[bytes]) -> dict[str, npt.NDArray[np.floating]]:
    """The weights of a file, without what it says of how they were made."""
    with np.load(stream) as arrays:
        return {name: arrays[name].astype(np.float64) for name in arrays.files if name != MADE_BY}
