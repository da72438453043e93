"""ONNX models as lists of operators with shapes: what others wrote, read as data, every tensor's size known.

ONNX is an open format of neural networks (https://onnx.ai); the package ``onnx`` reads it and finds the shapes. Weights
themselves are not needed and never loaded from beside the file.
"""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ddlopt.models.errors import InstanceError, OptionError

Shape = tuple[int, ...]
_SAME_NUMBERS = frozenset({"Cast", "Flatten", "Identity", "Reshape", "Squeeze", "Transpose", "Unsqueeze"})
"""Operators whose output has the numbers of their first input."""
_MADE = frozenset({"ConstantOfShape", "RandomNormal", "RandomUniform"})
"""Operators that stand for weights in files that were published without them."""
_KNOWN = ("", "ai.onnx")
"""Domains of operators whose sizes the package infers."""
_SHOWN = 5
"""Names in a message, at most."""


@dataclass(frozen=True)
class Node:
    """An operator of the file whose output depends on data.

    Parameters
    ----------
    name : str
        Its own, or that of its first output.
    kind : str
        As ONNX calls it, e.g. ``"Conv"``; with the domain before it where it is not ONNX's own.
    reads : tuple of int
        Nodes whose outputs it reads, in order and each once; -1 - k for what comes into the model as its k-th input.
    inputs, outputs : tuple of tuple of int
        Shapes, in the order of the file; () where an optional input is left out.
    weights : dict of int to (str, tuple of int)
        By the place of the input, name and shape of the constant that training may change.
    attributes : dict of str to object
    """

    name: str
    kind: str
    reads: tuple[int, ...]
    inputs: tuple[Shape, ...]
    outputs: tuple[Shape, ...]
    weights: Mapping[int, tuple[str, Shape]]
    attributes: Mapping[str, Any]


@dataclass(frozen=True)
class OnnxModel:
    """A model.

    Parameters
    ----------
    name : str
    samples : int
        That the shapes in it are for.
    inputs : tuple of (str, tuple of int)
        What comes in: names and shapes.
    nodes : tuple of Node
        Each after those that it reads.
    output : int
        The node that gives the first output.
    """

    name: str
    samples: int
    inputs: tuple[tuple[str, Shape], ...]
    nodes: tuple[Node, ...]
    output: int


def read_model(path: str | Path, dims: Iterable[str] = ()) -> OnnxModel:
    """Read a model.

    Parameters
    ----------
    path : str or Path
        An ``.onnx`` file.
    dims : iterable of str
        ``name=size`` for dimensions without a size; one that is the first of an input, its samples, is 1 if not given.

    Raises
    ------
    OptionError
        If the package is missing, a dimension has no size, or one that is given is not there.
    InstanceError
        If the file is no model, or the size of a tensor cannot be found.
    """
    onnx = _package()
    model = _loaded(onnx, Path(path))
    samples = _set_sizes(model.graph, _sizes(dims), Path(path))
    try:
        inferred = onnx.shape_inference.infer_shapes(model, strict_mode=True, data_prop=True)
    except (onnx.shape_inference.InferenceError, ValueError, RuntimeError) as problem:
        told = " ".join(str(problem).split())[:200]
        raise InstanceError(f"{path}: shapes do not fit together: {told}") from None
    found = _Nodes(onnx, inferred.graph, Path(path))
    nodes = tuple(found.all())
    output = next((found.maker.get(each.name, -1) for each in inferred.graph.output), -1)
    if output < 0:
        raise InstanceError(f"{path}: its output does not depend on what comes into the model")
    inputs = tuple((name, found.shapes.get(name, ())) for name in found.inputs)
    return OnnxModel(inferred.graph.name or Path(path).stem, samples, inputs, nodes, output)


def _package() -> Any:
    try:
        import onnx
        import onnx.shape_inference
    except ImportError:
        raise OptionError("ONNX files are read by the package onnx; install it: pip install 'ddlopt[onnx]'") from None
    return onnx


def _loaded(onnx: Any, path: Path) -> Any:
    from google.protobuf.message import DecodeError  # type: ignore[import-untyped]

    try:
        model = onnx.load(path, load_external_data=False)
    except OSError as problem:
        raise InstanceError(f"{path}: {problem.strerror}") from None
    except (DecodeError, ValueError):
        raise InstanceError(f"{path}: it is no ONNX file, or a part of one") from None
    if not model.graph.node:
        raise InstanceError(f"{path}: it is no ONNX file, or a part of one: it has no operators")
    known = onnx.defs.onnx_opset_version()
    for entry in model.opset_import:
        if entry.domain in _KNOWN and not 1 <= entry.version <= known:
            raise InstanceError(f"{path}: it has operator set {entry.version}; the package onnx knows 1 to {known}")
    return model


def _sizes(dims: Iterable[str]) -> dict[str, int]:
    sizes = {}
    for entry in dims:
        name, _, size = entry.rpartition("=")
        if not name or not size.isdecimal() or int(size) < 1:
            raise OptionError(f"dims has '{entry}'; it is a list of name=size, with sizes of at least 1")
        sizes[name] = int(size)
    return sizes


def _set_sizes(graph: Any, sizes: dict[str, int], path: Path) -> int:
    """Give all dimensions of what comes in a size; how many samples there are."""
    given, left, seen = dict(sizes), [], []
    constants = {each.name for each in graph.initializer}
    samples = None
    for entry in graph.input:
        if entry.name in constants:
            continue
        for place, dim in enumerate(entry.type.tensor_type.shape.dim):
            if not dim.dim_value > 0:
                name = dim.dim_param or f"{entry.name}.{place}"
                seen.append(name)
                if name not in given and place > 0:
                    left.append(name)
                    continue
                dim.dim_value = given.setdefault(name, 1)
            if place == 0 and samples is None:
                samples = dim.dim_value
    if left:
        raise OptionError(f'{path}: these dimensions have no size: {_listed(left)}; set dims=["{left[0]}=SIZE"]')
    for name in sizes:
        if name not in seen:
            there = f"those without a size are {_listed(seen)}" if seen else "all of them have sizes"
            raise OptionError(f"{path}: there is no dimension '{name}' to set; {there}")
    # Sizes that somebody inferred, maybe for other ones, are inferred again, but for operators that nobody knows.
    foreign = {name for node in graph.node if node.domain not in _KNOWN for name in node.output}
    kept = [entry for entry in graph.value_info if entry.name in foreign]
    del graph.value_info[:]
    graph.value_info.extend(kept)
    for entry in (*graph.value_info, *graph.output):
        for dim in entry.type.tensor_type.shape.dim:
            if dim.dim_param in given:
                dim.dim_value = given[dim.dim_param]
    return samples or 1


def _listed(names: Iterable[str]) -> str:
    distinct = list(dict.fromkeys(names))
    more = f" and {len(distinct) - _SHOWN} more" if len(distinct) > _SHOWN else ""
    return ", ".join(f"'{name}'" for name in distinct[:_SHOWN]) + more


class _Nodes:
    """Nodes of a graph with all sizes."""

    def __init__(self, onnx: Any, graph: Any, path: Path) -> None:
        self.onnx, self.graph, self.path = onnx, graph, path
        self.shapes = {each.name: tuple(each.dims) for each in graph.initializer}
        for entry in (*graph.input, *graph.value_info, *graph.output):
            dims = entry.type.tensor_type.shape.dim
            if entry.type.tensor_type.HasField("shape") and all(dim.dim_value > 0 for dim in dims):
                self.shapes.setdefault(entry.name, tuple(dim.dim_value for dim in dims))
        floats = {onnx.TensorProto.FLOAT, onnx.TensorProto.FLOAT16, onnx.TensorProto.BFLOAT16, onnx.TensorProto.DOUBLE}
        self.trained = {each.name: each.name for each in graph.initializer if each.data_type in floats}
        self.constant = {each.name for each in graph.initializer}
        self.inputs = [each.name for each in graph.input if each.name not in self.constant]
        self.maker = {name: -1 - place for place, name in enumerate(self.inputs)}

    def all(self) -> Iterable[Node]:
        count = 0
        for node in self.graph.node:
            if all(name in self.constant for name in node.input if name):
                self._keep_constant(node)
                continue
            yield self._node(node)
            self.maker |= dict.fromkeys(node.output, count)
            count += 1

    def _keep_constant(self, node: Any) -> None:
        """What does not depend on data: a weight in another shape, one that stands for a weight, or neither."""
        self.constant |= set(node.output)
        if node.op_type in _SAME_NUMBERS and node.input[0] in self.trained:
            self.trained[node.output[0]] = self.trained[node.input[0]]
        elif node.op_type in _MADE and node.output[0] in self.shapes:
            self.trained[node.output[0]] = node.output[0]

    def _node(self, node: Any) -> Node:
        name = node.name or node.output[0]
        kind = node.op_type if node.domain in _KNOWN else f"{node.domain}.{node.op_type}"
        weights = {
            place: (self.trained[each], self.shapes[self.trained[each]])
            for place, each in enumerate(node.input)
            if each in self.trained
        }
        used = (each for each in node.input if each and each not in self.constant)
        return Node(
            name,
            kind,
            tuple(dict.fromkeys(self._maker(each, name, kind) for each in used)),
            tuple(self._shape(each, name, kind) if each and each not in self.constant else () for each in node.input),
            tuple(self._shape(each, name, kind) for each in node.output[:1]),
            weights,
            {each.name: self.onnx.helper.get_attribute_value(each) for each in node.attribute},
        )

    def _maker(self, tensor: str, name: str, kind: str) -> int:
        if tensor not in self.maker:
            raise InstanceError(f"{self.path}: operator '{name}' ({kind}) reads '{tensor}', which nothing before makes")
        return self.maker[tensor]

    def _shape(self, tensor: str, name: str, kind: str) -> Shape:
        if tensor not in self.shapes:
            raise InstanceError(f"{self.path}: the size of '{tensor}' at operator '{name}' ({kind}) cannot be found")
        return self.shapes[tensor]


def numbers(shape: Shape) -> int:
    """How many there are in a tensor."""
    return math.prod(shape)
