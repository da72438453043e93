"""Training graphs drawn at random, for sufficient factor broadcasting at any size."""

from dataclasses import dataclass
from typing import Any, get_args

import numpy as np
import numpy.typing as npt

from ddlopt.instances.options import at_least, one_of, part, positive
from ddlopt.instances.workloads.training import GIGABIT_PER_S
from ddlopt.models.compression import SfbInstance
from ddlopt.models.compression.sfb.instance import BYTES_PER_ELEMENT, CostModel

Floats = npt.NDArray[np.float64]
Reads = list[list[int]]

_SHAPES = ("training", "any")
_COST_MODELS = get_args(CostModel)
_BROADCASTS = ("per_tensor", "per_edge")
_FLOPS = 4e12
"""Of a device at small batches."""
# Five microseconds, as launching a kernel takes on GPUs.
_LAUNCH_S = 5e-6
# Operators of networks read one to three tensors.
_MOST_READ = 3


def random_graph(
    rng: np.random.Generator,
    operators: int = 60,
    shape: str = "training",
    width: int = 4,
    replicas: int = 4,
    mixed_replicas: bool = False,
    network_gigabit_per_s: float = 25.0,
    samples: int = 16,
    fixed_part: float = 0.05,
    cost_model: str = "per_link",
    broadcast: str = "per_tensor",
    penalty_s: float = 1e-6,  # as in the released code of TAG
    memory_part: float | None = None,
    compute_part: float | None = None,
) -> SfbInstance:
    """A training graph whose figures are drawn, log-uniform, within ranges that occur in neural networks.

    Seconds have four significant digits, bytes none after the point: processors differ in the last bits of powers.

    Parameters
    ----------
    rng : numpy.random.Generator
    operators : int
        How many, at least 2.
    shape : {"training", "any"}
        ``training``: layers of a forward operator, one that hands the error back, and mostly one that calculates the
        gradient of the weights, from what the forward operator read and the error. ``any``: any acyclic graph, where
        every third operator produces a gradient and an operator has up to three tensors.
    width : int
        Operators read from up to three of this many before them.
    replicas : int
        Devices of every operator; with ``mixed_replicas`` the most, from 1.
    mixed_replicas : bool
        Draw replicas and bandwidth for each operator.
    network_gigabit_per_s : float
        Of a device's link.
    samples : int
        In the batch: tensors and computation grow with it, gradients do not.
    fixed_part : float
        Part of the operators that cannot be duplicated.
    cost_model, broadcast, penalty_s
        As the instance has them.
    memory_part, compute_part : float, optional
        Budgets, as parts of what duplicating everything takes.

    Raises
    ------
    OptionError
        If an option is out of its range.
    """
    one_of("shape", shape, _SHAPES)
    one_of("cost_model", cost_model, _COST_MODELS)
    one_of("broadcast", broadcast, _BROADCASTS)
    at_least("operators", operators, 2)
    for option, given in (("width", width), ("replicas", replicas), ("samples", samples)):
        at_least(option, given, 1)
    positive("network_gigabit_per_s", network_gigabit_per_s)
    part("fixed_part", fixed_part)
    at_least("penalty_s", penalty_s, 0)
    graph = (_training if shape == "training" else _any)(rng, operators, width, samples)
    count = np.full(operators, replicas)
    bandwidth = np.full(operators, network_gigabit_per_s * GIGABIT_PER_S)
    if mixed_replicas:
        count = rng.integers(1, replicas, operators, endpoint=True)
        bandwidth *= rng.choice([0.25, 0.5, 1.0], operators)
    columns = {
        "name": graph.names,
        "time_s": [float(f"{seconds:.4g}") for seconds in graph.time_s],
        "replicas": count.tolist(),
        "bandwidth_bytes_per_s": bandwidth.tolist(),
        "gradient_bytes": np.rint(graph.gradient_bytes).tolist(),
        "memory_bytes": graph.memory_bytes(operators).tolist(),
        "can_duplicate": (rng.random(operators) >= fixed_part).tolist(),
    }
    data = {
        "name": f"sfb-{shape}-n{operators}",
        "source": "Graph and figures are drawn: synthetic",
        "operators": [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)],
        "tensors": graph.tensors,
        "cost_model": cost_model,
        "broadcast": broadcast,
        "duplication_penalty_s": penalty_s,
    }
    made = SfbInstance.from_data(data)
    budgets = {}
    if memory_part is not None:
        part("memory_part", memory_part)
        memory = sum(each.memory_bytes for each, may in zip(made.operators, made.eligible, strict=True) if may)
        budgets["memory_budget_bytes"] = memory_part * memory
    if compute_part is not None:
        part("compute_part", compute_part)
        budgets["compute_budget_s"] = compute_part * float(made.extra_s[made.eligible].sum())
    return SfbInstance.from_data(data | budgets) if budgets else made


@dataclass(frozen=True)
class _Graph:
    """Operators' names, seconds and gradients, and tensors as an instance's data have them."""

    names: list[str]
    time_s: Floats
    gradient_bytes: Floats
    tensors: list[dict[str, Any]]

    def memory_bytes(self, operators: int) -> Floats:
        """What an operator reads and hands on, in full."""
        held = np.zeros(operators)
        for tensor in self.tensors:
            for node in (tensor["producer"], *tensor["consumers"]):
                held[node] += tensor["size_bytes"]
        return held


def _training(rng: np.random.Generator, operators: int, width: int, samples: int) -> _Graph:
    """Operators 0..L-1 are forward; L + i hands the error of layer i back; then the gradients, of some layers."""
    layers = -(-operators // 3)
    weighted = np.sort(rng.permutation(layers)[: operators - 2 * layers]).tolist()
    reads = _reads(rng, layers, width)
    outputs = 2.0 ** rng.uniform(8, 15, layers)
    read = np.array([sum(outputs[k] for k in each) if each else outputs[0] for each in reads])
    # Dense layers use a weight once for a sample and convolutions, with few weights, at every place of an image.
    dense = rng.random(layers) < 0.5
    weights = np.where(dense, np.minimum(read * outputs, 2.0**26), 2.0 ** rng.uniform(10, 21, layers))
    uses = np.where(dense, 1.0, 2.0 ** rng.uniform(4, 11, layers))
    time_s = _LAUNCH_S + 2 * samples * weights * uses / _FLOPS

    activation: Reads = [[layers + i] for i in range(layers)]
    error: Reads = [[] for _ in range(layers)]
    for i, each in enumerate(reads):
        for k in each:
            activation[k].append(i)
            error[i].append(layers + k)
    for place, i in enumerate(weighted):
        error[i].append(2 * layers + place)
        for k in reads[i]:
            activation[k].append(2 * layers + place)
    size = np.rint(BYTES_PER_ELEMENT * samples * outputs).tolist()
    kinds = {"forward": range(layers), "error": range(layers), "gradient": weighted}
    return _Graph(
        [f"{kind}-{i}" for kind, places in kinds.items() for i in places],
        np.concatenate((time_s, time_s, time_s[weighted])),
        np.concatenate((np.zeros(2 * layers), BYTES_PER_ELEMENT * weights[weighted])),
        [_tensor(i, activation[i], size[i]) for i in range(layers)]
        + [_tensor(layers + i, error[i], size[i]) for i in range(layers)],
    )


def _any(rng: np.random.Generator, operators: int, width: int, samples: int) -> _Graph:
    """Operators in the order of computation; each input is one of the up to three tensors of its producer."""
    counts = rng.integers(1, _MOST_READ, operators, endpoint=True)
    consumers: list[Reads] = [[[] for _ in range(count)] for count in counts]
    for i, each in enumerate(_reads(rng, operators, width)):
        for k, drawn in zip(each, rng.random(len(each)), strict=True):
            consumers[k][int(drawn * counts[k])].append(i)
    size = np.rint(BYTES_PER_ELEMENT * samples * 2.0 ** rng.uniform(8, 15, counts.sum())).tolist()
    flat = [(i, each) for i, tensors in enumerate(consumers) for each in tensors]
    trained = rng.random(operators) < 1 / 3
    return _Graph(
        [f"operator-{i}" for i in range(operators)],
        _LAUNCH_S + samples * 2.0 ** rng.uniform(14, 30, operators) / _FLOPS,
        np.where(trained, BYTES_PER_ELEMENT * 2.0 ** rng.uniform(12, 24, operators), 0.0),
        [_tensor(i, each, size[place]) for place, (i, each) in enumerate(flat)],
    )


def _reads(rng: np.random.Generator, count: int, width: int) -> Reads:
    """Up to three of the ``width`` places before, for each place; one at least, but for the first."""
    back = rng.integers(1, width, (count, _MOST_READ), endpoint=True).tolist()
    many = rng.integers(1, _MOST_READ, count, endpoint=True).tolist()
    return [
        sorted({max(0, i - step) for step in steps[:taken]}) if i else []
        for i, (steps, taken) in enumerate(zip(back, many, strict=True))
    ]


def _tensor(producer: int, consumers: list[int], size_bytes: float) -> dict[str, Any]:
    return {"producer": producer, "consumers": consumers, "size_bytes": size_bytes}
