"""What operators of ONNX cost, as layers of a network: parameters, operations and numbers moved, for one sample.

Operators that are not known cost the bytes that they move, with every matrix among their weights as one that is
trained, and are told.
"""

import itertools
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from ddlopt.instances.readers.models.onnx_model import Node, OnnxModel, Shape, Stored, numbers, some
from ddlopt.instances.readers.models.onnx_rules import FLOPS, FREE, is_known, oriented, word
from ddlopt.instances.workloads.networks.layers import Layer, ParameterTensors
from ddlopt.instances.workloads.training import Workload
from ddlopt.models.errors import InstanceError

DENSE = frozenset({"Conv", "ConvTranspose", "Gemm", "MatMul"})
"""Operators that multiply by a weight."""
_CONVOLUTIONS = frozenset({"Conv", "ConvInteger", "ConvTranspose", "DeformConv", "QLinearConv"})
_ORDER = {"bias": 0}
"""The backward pass has the gradient of a bias before that of its weight, and that of a scale before its shift."""

Parts = Mapping[int, tuple[Stored, ...]]
"""By the place of an input, what of the file it is calculated from."""


@dataclass(frozen=True)
class OnnxLayer:
    """An operator as a layer.

    Parameters
    ----------
    kind : str
    reads : tuple of int
        As those of its node.
    layer : Layer
    known : bool
        Whether there is a rule for what it costs.
    owner : str, optional
        The layer whose weight it uses, if not its own.
    """

    kind: str
    reads: tuple[int, ...]
    layer: Layer
    known: bool
    owner: str | None = None


def layers_of(model: OnnxModel) -> tuple[OnnxLayer, ...]:
    """One for each node. Parameters that several nodes share belong to the first of them.

    Raises
    ------
    InstanceError
        If there is nothing to train, or the weights of an operator do not fit its other shapes.
    """
    found, owned, names = [], dict[str, str](), Counter[str]()
    for node in model.nodes:
        own = {
            place: tuple(part for part in weight.parts if part.name not in owned)
            for place, weight in node.weights.items()
        }
        owner = _owner(node, own, owned)
        name = _name(node, own)
        names[name] += 1
        unique = name if names[name] == 1 else f"{name}.{names[name]}"
        owned |= {part.name: unique for parts in own.values() for part in parts}
        try:
            found.append(replace(_layer(node, own, unique, model.samples), owner=owner))
        except (IndexError, KeyError, ZeroDivisionError):
            raise InstanceError(f"operator '{node.name}' ({node.kind}): its weights do not fit its input") from None
    if not owned:
        raise InstanceError(f"model '{model.name}' has no weights that training changes")
    return tuple(found)


def workload_of(model: OnnxModel, samples: int) -> Workload:
    """The layers that have parameters or cost anything, for a number of samples of a GPU."""
    layers = [each.layer for each in layers_of(model)]
    kept = tuple(layer for layer in layers if layer.parameters or layer.flops or layer.inputs)
    return Workload(model.name, kept, samples)


def told_of(model: OnnxModel) -> str:
    """What is not as in the file, or had to be guessed: a text that begins with a semicolon, or is empty."""
    notes = list(model.notes)
    kinds = Counter(node.kind for node in model.nodes if not is_known(node.kind))
    if kinds:
        unknown = ", ".join(f"{count} x {kind}" for kind, count in sorted(kinds.items()))
        notes.append(f"costed by the bytes they move, for want of a rule: {unknown}")
    if model.left_out:
        total = sum(numbers(part.shape) for part in model.left_out)
        names = some([part.name for part in model.left_out])
        notes.append(f"taken for no parameters: {total} numbers in {len(model.left_out)} constants ({names})")
    return "".join(f"; {note}" for note in notes)


def _owner(node: Node, own: Parts, owned: Mapping[str, str]) -> str | None:
    """Whose weight a node uses: of its main weight where it has one, of any otherwise."""
    main = [place for place in node.weights if word(node, place) == "weight"] or list(node.weights)
    if any(own[place] for place in main):
        return None
    return next((owned[part.name] for place in main for part in node.weights[place].parts), None)


def _name(node: Node, own: Parts) -> str:
    """What the names of its weights have in common, which mostly is the name of the module; else its own."""
    names = [(place, part.name) for place, parts in own.items() for part in parts]
    for place, name in names:
        module, _, last = name.rpartition(".")
        if module and last == word(node, place):
            return module
    return _common([name for _, name in names]).rstrip("._-/:") or node.name


def _common(names: Sequence[str]) -> str:
    """What all names begin with; nothing of none."""
    equal = itertools.takewhile(lambda letters: len(set(letters)) == 1, zip(*names, strict=False))
    return "".join(letters[0] for letters in equal)


def _layer(node: Node, own: Parts, name: str, samples: int) -> OnnxLayer:
    outputs = math.ceil(numbers(node.outputs[0]) / samples)
    inputs = math.ceil(sum(numbers(shape) for shape in node.inputs if shape) / samples)
    tensors = _tensors(node, own)
    parameters = sum(numbers(shape) for _, shape in tensors)
    known = is_known(node.kind)
    if node.kind in FREE and not tensors:
        return OnnxLayer(node.kind, node.reads, Layer(name, 0, 0, 0, 0), known=True)
    if node.kind in FREE:
        flops = outputs
    elif node.kind in FLOPS:
        flops = math.ceil(FLOPS[node.kind](node) / samples)
    else:
        flops = 0
    inputs = outputs if node.kind == "Gather" else inputs
    return OnnxLayer(
        node.kind,
        node.reads,
        Layer(name, parameters, flops, inputs, outputs, node.kind in _CONVOLUTIONS, tensors),
        known,
    )


def _tensors(node: Node, own: Parts) -> ParameterTensors:
    """Words and shapes; weights of dense layers as (outputs, inputs)."""
    tensors, words = [], Counter[str]()
    for place, parts in own.items():
        for part in sorted(parts, key=lambda part: -numbers(part.shape)):
            plain = word(node, place)
            words[plain] += 1
            unique = plain if words[plain] == 1 else f"{plain}{words[plain]}"
            tensors.append((_ORDER.get(plain, 1), unique, _shape(node, place, part.shape)))
    return tuple((unique, shape) for _, unique, shape in sorted(tensors, key=lambda tensor: tensor[0]))


def _shape(node: Node, place: int, stored: Shape) -> Shape:
    """As the operator reads it where that is the stored shape in some order of axes, else as it is stored."""
    used = node.weights[place].shape
    if sorted(used) == sorted(stored):
        return oriented(node, place, used)
    return oriented(node, place, stored) if len(used) == len(stored) else stored
