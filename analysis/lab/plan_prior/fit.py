"""Weights of least cross entropy, by Adam in PyTorch."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from ddlopt.analysis.lab.plan_prior.examples import Examples
from ddlopt.analysis.lab.plan_prior.graph import Inputs
from ddlopt.analysis.lab.plan_prior.graph_network import log_probabilities, shapes
from ddlopt.analysis.pytorch import pytorch

Weights = dict[str, npt.NDArray[np.float32]]

# States of one instance in a step of the optimiser.
_STATES = 8
RATE = 1.5e-3
"""A usual one for Adam."""
# Of the gradient, at most, as in TAG's released code.
_NORM = 0.6


def start(seed: int) -> Weights:
    """Random weights: of variance 1 over the number of inputs; biases 0."""
    rng = np.random.default_rng([seed, 3])
    found = {}
    for name, shape in shapes().items():
        scale = 0.0 if name.endswith("/b") else 1 / math.sqrt(shape[0])
        found[name] = (scale * rng.normal(size=shape)).astype(np.float32)
    return found


def fit(
    given: Sequence[Examples],
    begin: Mapping[str, npt.NDArray[np.floating]],
    steps: int,
    seed: int,
    report: Any = None,
    rate: float = RATE,
) -> Weights:
    """Go on from some weights.

    Parameters
    ----------
    given : sequence of Examples
    begin : dict of str to array
    steps : int
        Of the optimiser, each over some states of one instance.
    seed : int
    report : callable, optional
        Told the number of a step and its loss, now and then.
    rate : float
        Of the first step; it falls to 0 along half a cosine.

    Raises
    ------
    OptionError
        If PyTorch is not installed.
    """
    torch = pytorch()
    weights = {name: torch.tensor(each).requires_grad_() for name, each in begin.items()}
    optimiser = torch.optim.Adam(weights.values(), lr=rate)
    rng, total = np.random.default_rng([seed, 4]), 0.0
    order: list[int] = []
    for step in range(steps):
        optimiser.param_groups[0]["lr"] = rate * (1 + math.cos(math.pi * step / steps)) / 2
        order = order or rng.permutation(len(given)).tolist()
        made = given[order.pop()]
        picked = rng.permutation(len(made.weight))[:_STATES]
        optimiser.zero_grad()
        loss = _loss(torch, weights, made, picked)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(weights.values(), _NORM)
        optimiser.step()
        total += loss.item()
        if report is not None and step % 100 == 99:
            report(step + 1, total / 100)
            total = 0.0
    return {name: weight.detach().numpy() for name, weight in weights.items()}


def _loss(torch: Any, weights: Mapping[str, Any], made: Examples, picked: npt.NDArray[np.int64]) -> Any:
    state = [torch.tensor(each[picked]) for each in made.inputs[:4]]
    inputs = Inputs(*state, *(torch.tensor(each) for each in made.inputs[4:]))
    table = log_probabilities(torch, weights, inputs)
    lost = -(torch.tensor(made.target[picked]) * table).sum(-1)
    return (torch.tensor(made.weight[picked]) * lost).sum(-1).mean()
