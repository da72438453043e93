"""The larger graph network, with attention over groups and devices; NumPy and PyTorch run the same code."""

from types import ModuleType
from typing import Any

from ddlopt.analysis.lab.plan_prior.features import ACTION_FEATURES
from ddlopt.analysis.lab.plan_prior.graph import FEATURES, Inputs

# Width of the network; the weights in the package are for this one.
HIDDEN = 64
# Of attention, as in TAG's released code.
HEADS = 4
# Of messages, as in TAG's released code.
ROUNDS = 4
EDGES = {
    "prev": ("op", "op", "passed"),
    "succ": ("op", "op", "passed"),
    "place": ("op", "device", "place"),
    "serve": ("device", "op", "place"),
    "link": ("device", "device", "link"),
}
"""Kinds of edges: from what nodes, to what nodes, with which features."""
_SLOPE = 0.2
"""Of the leaky rectifier in attention, as usual there."""
_SMALL = 1e-5
"""Added to a variance before it divides."""
_OUT = -1e9
"""Score in place of that of an edge which is not there: its exponential is 0."""


def shapes() -> dict[str, tuple[int, ...]]:
    """Shape of each of the network's arrays."""
    found: dict[str, tuple[int, ...]] = {}
    for kind in ("op", "device"):
        found |= {f"in/{kind}": (FEATURES[kind], HIDDEN), f"in/{kind}/b": (HIDDEN,)}
    for k in range(ROUNDS):
        for name, (_, _, features) in EDGES.items():
            found |= {
                f"{k}/{name}/value": (HIDDEN, HIDDEN),
                f"{k}/{name}/edge": (FEATURES[features], HIDDEN),
                f"{k}/{name}/from": (HIDDEN, HEADS),
                f"{k}/{name}/to": (HIDDEN, HEADS),
                f"{k}/{name}/along": (FEATURES[features], HEADS),
            }
        for kind in ("op", "device"):
            found |= {f"{k}/{kind}": (2 * HIDDEN, HIDDEN), f"{k}/{kind}/b": (HIDDEN,)}
    return found | {
        "out/device": (HIDDEN + 1, HIDDEN), "out/device/b": (HIDDEN,),
        "out/device2": (HIDDEN, HIDDEN), "out/device2/b": (HIDDEN,),
        "out/chosen": (HIDDEN, HIDDEN), "out/op": (HIDDEN, HIDDEN), "out/action": (ACTION_FEATURES, HIDDEN),
        "out/b": (HIDDEN,), "out/score": (HIDDEN,),
    }  # fmt: skip


def log_probabilities(xp: ModuleType, weights: Any, inputs: Inputs) -> Any:
    r"""(states, groups, actions): of each group's actions, given each state.

    Nodes begin with :math:`\tanh(X W + b)`. In each round every kind of edge has a message for its targets: of the
    sources s of a target t, with features :math:`e_{st}` of the edge,

    .. math:: \sum_s \alpha_{st} (V s + E e_{st}), \quad
       \alpha_{st} \propto \exp \lambda(u^\top s + v^\top t + w^\top e_{st})

    with several heads, :math:`\lambda` the leaky rectifier and nodes of mean 0 and variance 1. Messages of all kinds
    of edges are averaged, and :math:`t + \tanh([t, \text{message}]\,F + f)` is the node of the next round. An action
    is scored from the mean over device groups of what says whether it has them, its group, and its own features.

    Parameters
    ----------
    xp : module
        ``numpy`` or ``torch``.
    weights : dict
        Of arrays of that module, of these :func:`shapes`.
    inputs : Inputs
        The same.
    """
    nodes = {
        "op": xp.tanh(inputs.ops @ weights["in/op"] + weights["in/op/b"]),
        "device": xp.tanh(inputs.devices @ weights["in/device"] + weights["in/device/b"]),
    }
    edges = {
        "prev": inputs.passed[None],
        "succ": inputs.passed.swapaxes(0, 1)[None],
        "place": inputs.place.swapaxes(1, 2),
        "serve": inputs.place,
        "link": inputs.link,
    }
    there = {name: _there(xp, name, along) for name, along in edges.items()}
    for k in range(ROUNDS):
        level = {kind: _normal(xp, each) for kind, each in nodes.items()}
        told: dict[str, list[Any]] = {"op": [], "device": []}
        for name, (source, target, _) in EDGES.items():
            own = {part: weights[f"{k}/{name}/{part}"] for part in ("value", "edge", "from", "to", "along")}
            told[target].append(_message(xp, own, level[source], level[target], edges[name], there[name]))
        for kind, messages in told.items():
            joined = xp.concatenate([level[kind], sum(messages) / len(messages)], -1)
            nodes[kind] = nodes[kind] + xp.tanh(joined @ weights[f"{k}/{kind}"] + weights[f"{k}/{kind}/b"])
    return _scores(xp, weights, _normal(xp, nodes["op"]), _normal(xp, nodes["device"]), inputs)


def _there(xp: ModuleType, name: str, along: Any) -> Any:
    """1 where there is an edge, with an axis for heads in front."""
    if name in ("prev", "succ"):
        return xp.where(along[..., 0] > 0, 1.0, 0.0)[:, None]
    return xp.ones_like(along[..., 0])[:, None]


def _message(xp: ModuleType, own: dict[str, Any], source: Any, target: Any, along: Any, there: Any) -> Any:
    """(states, targets, HIDDEN); nothing for a target without edges."""
    states, sources, targets = len(source), source.shape[1], target.shape[1]
    score = (
        (source @ own["from"]).swapaxes(1, 2)[:, :, None, :]
        + (target @ own["to"]).swapaxes(1, 2)[:, :, :, None]
        + (along @ own["along"]).swapaxes(2, 3).swapaxes(1, 2)
    )
    score = xp.where(score > 0, score, _SLOPE * score)
    score = xp.where(there > 0, score, _OUT)
    part = xp.exp(score - xp.amax(score, -1)[..., None]) * there
    total = part.sum(-1)[..., None]
    part = part / xp.where(total > 0, total, 1.0)
    values = (source @ own["value"]).reshape(states, sources, HEADS, -1).swapaxes(1, 2)
    edge = own["edge"].reshape(len(own["edge"]), HEADS, -1).swapaxes(0, 1)
    features = (part[..., None] * along[:, None]).sum(-2)
    return (part @ values + features @ edge).swapaxes(1, 2).reshape(states, targets, -1)


def _normal(xp: ModuleType, nodes: Any) -> Any:
    centred = nodes - nodes.mean(-1)[..., None]
    return centred / xp.sqrt((centred * centred).mean(-1)[..., None] + _SMALL)


def _scores(xp: ModuleType, weights: Any, ops: Any, devices: Any, inputs: Inputs) -> Any:
    first, last = weights["out/device"][:HIDDEN], weights["out/device"][HIDDEN:]
    # Of a device group there are two versions: with it, and without it.
    without = devices @ first + weights["out/device/b"]
    both = (xp.tanh(each) for each in (without, without + last))
    seen = [xp.tanh(each @ weights["out/device2"] + weights["out/device2/b"]) for each in both]
    chosen = inputs.chosen[None]
    mean = ((1 - chosen) @ seen[0] + chosen @ seen[1]) / chosen.shape[-1]
    hidden = xp.tanh(
        (mean @ weights["out/chosen"])[:, None]
        + (ops @ weights["out/op"])[:, :, None]
        + (inputs.actions @ weights["out/action"] + weights["out/b"])[None]
    )
    score = hidden @ weights["out/score"]
    score = score - xp.amax(score, -1)[..., None]
    return score - xp.log(xp.exp(score).sum(-1))[..., None]
