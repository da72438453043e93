"""Timelines with the forward pass that follows: a network's, or drawn at random."""

import itertools

import numpy as np

from ddlopt.instances.generators.compression.random import random_timeline
from ddlopt.instances.generators.compression.timeline import network as network_timeline
from ddlopt.instances.options import positive
from ddlopt.models.compression import CompressionInstance, ForwardInstance
from ddlopt.models.errors import OptionError

POWERS = (1, 2, 4, 8, 16, 32, 64)
"""Numbers of parts: a 64th of the largest gradient of VGG-16 is 6.4 MB; shorter ones mostly launch."""


def network(
    rng: np.random.Generator,
    model: str = "vgg16",
    batch: int | None = None,
    nodes: int = 8,
    gpus_per_node: int = 8,
    intra: str = "nvlink",
    network_gigabit_per_s: float = 25.0,
    latency_us: float | None = None,
    compressors: tuple[str, ...] | None = None,
    accelerator: str = "v100",
    error_budget_part: float | None = 0.1,
    parts: tuple[int, ...] = POWERS,
    forward_part: float = 0.5,
) -> ForwardInstance:
    """A network trained in data parallelism, step after step. Nothing is drawn at random.

    Parameters
    ----------
    rng : numpy.random.Generator
    model, batch, nodes, gpus_per_node, intra, network_gigabit_per_s, latency_us, compressors, accelerator
        As of :func:`~ddlopt.instances.generators.compression.timeline.network`.
    error_budget_part : float, optional
        As there; by default a tenth of the energy of all gradients.
    parts : list of int
        Into how many parts a gradient may be cut.
    forward_part : float
        What a layer's forward pass takes of its backward pass; the roofline's backward pass is two forward passes.

    Raises
    ------
    OptionError
        If an option is out of range.
    """
    timeline = network_timeline(
        rng,
        model=model,
        batch=batch,
        nodes=nodes,
        gpus_per_node=gpus_per_node,
        intra=intra,
        network_gigabit_per_s=network_gigabit_per_s,
        latency_us=latency_us,
        compressors=compressors,
        accelerator=accelerator,
        error_budget_part=error_budget_part,
    )
    return _followed(timeline, parts, forward_part)


def random_forward(
    rng: np.random.Generator,
    gradients: int = 20,
    options: int = 4,
    nodes: int = 8,
    network_gigabit_per_s: float = 25.0,
    spread: float = 0.3,
    backward_part: float = 0.5,
    error_budget_part: float | None = 0.5,
    parts: tuple[int, ...] = (1, 2, 4),
    forward_part: float = 0.5,
) -> ForwardInstance:
    """A backward pass of any shapes, and as much of a forward pass for each interval of it.

    Parameters
    ----------
    rng : numpy.random.Generator
    gradients, options, nodes, network_gigabit_per_s, spread, backward_part, error_budget_part
        As of :func:`~ddlopt.instances.generators.compression.random.random_timeline`.
    parts, forward_part
        As of :func:`network`.

    Raises
    ------
    OptionError
        If an option is out of range.
    """
    timeline = random_timeline(
        rng,
        gradients=gradients,
        options=options,
        nodes=nodes,
        network_gigabit_per_s=network_gigabit_per_s,
        spread=spread,
        backward_part=backward_part,
        error_budget_part=error_budget_part,
    )
    return _followed(timeline, parts, forward_part)


def _followed(timeline: CompressionInstance, parts: tuple[int, ...], forward_part: float) -> ForwardInstance:
    positive("forward_part", forward_part)
    parts = tuple(parts)  # a list, where it is from the command line
    if parts[:1] != (1,) or any(b <= a for a, b in itertools.pairwise(parts)):
        raise OptionError(f"parts is {list(parts)}; give increasing numbers, the first of them 1")
    between = np.diff(timeline.ready_s, prepend=0.0).tolist()
    return ForwardInstance(
        name=f"forward-{timeline.name}",
        source=f"{timeline.source}; a forward pass takes {forward_part:g} of the backward pass, layer by layer",
        timeline=timeline,
        forward_s=tuple(float(f"{forward_part * each:.6g}") for each in between),
        parts=parts,
    )
