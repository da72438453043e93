"""The graph of an ONNX model, walked once from its inputs to its outputs: functions written out, branches chosen.

Whatever an operator reads is known when it is met, so that each is looked at by itself: a constant, whose numbers are
calculated if sizes may need them, or a node, whose output depends on data.
"""

from collections import ChainMap, Counter
from collections.abc import Iterable, Iterator, Mapping, MutableMapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from ddlopt.instances.readers.models.onnx_constants import SAME_NUMBERS, Constants, Tensor, Values
from ddlopt.instances.readers.models.onnx_model import Node, Shape, Stored, Weight, numbers, some
from ddlopt.instances.readers.models.onnx_sequences import SEQUENCES, Rewriting
from ddlopt.models.errors import InstanceError

FunctionKey = tuple[str, str, str]
"""Domain, name and overload."""
KNOWN_DOMAINS = ("", "ai.onnx")
"""Domains of operators whose sizes the package infers."""
_LOOPS = frozenset({"Loop", "Scan", "SequenceMap"})
_MADE = frozenset({"ConstantOfShape", "RandomNormal", "RandomUniform"})
"""Operators that stand for weights in files that were published without them."""


@dataclass
class _Scope:
    """Where names are looked up: the graph, a branch or a call of a function.

    ``place`` tells apart scopes that store numbers of their own: two calls of a function share them.
    """

    tensors: MutableMapping[str, Tensor]
    versions: Mapping[str, int]
    place: tuple[str, ...] = ()
    prefix: str = ""
    attributes: Mapping[str, Any] | None = None


class Walk:
    """Nodes of a model with all sizes.

    Parameters
    ----------
    onnx : module
    model : ModelProto
        Whose inputs have sizes, and whose functions do not call themselves.
    path : Path
        For messages.
    """

    def __init__(self, onnx: Any, model: Any, path: Path) -> None:
        self.onnx, self.model, self.path = onnx, model, path
        self.constants = Constants(onnx)
        self.functions = {called(function): function for function in model.functions}
        self.nodes: list[Node] = []
        self.stored: dict[tuple[str, ...], Stored] = {}
        self.names: Counter[str] = Counter()
        self.undecided: list[str] = []
        graph = model.graph
        self.declared = {entry.name: entry.type for entry in graph.output}
        # Sizes that somebody inferred, maybe for other ones, are inferred again, but for operators that nobody knows.
        foreign = {name for node in graph.node if node.domain not in KNOWN_DOMAINS for name in node.output}
        self.declared |= {entry.name: entry.type for entry in graph.value_info if entry.name in foreign}
        self.without_weights = not any(_is_matrix(each) for each in _protos(graph))
        initial = {each.name for each in (*graph.initializer, *(one.values for one in graph.sparse_initializer))}
        entering = [entry for entry in graph.input if entry.name not in initial]
        self.scope = _Scope({}, {_domain(each.domain): each.version for each in model.opset_import})
        for place, entry in enumerate(entering):
            kind = entry.type.tensor_type.elem_type
            whole = kind != 0 and kind not in self.constants.floats
            self.scope.tensors[entry.name] = Tensor(entry.type, -1 - place, whole=whole)
        self.inputs = [(entry.name, self.scope.tensors[entry.name].shape or ()) for entry in entering]

    def all(self) -> list[int]:
        """Take all nodes; those that give what goes out."""
        self._take(self.model.graph, self.scope)
        found = [self.scope.tensors.get(each.name) for each in self.model.graph.output]
        whole = [each for one in found if one is not None for each in (one.members or (one,))]
        return [each.maker for each in whole if each.maker is not None and each.maker >= 0]

    def notes(self) -> Iterator[str]:
        """What was decided."""
        if self.undecided:
            yield (
                f"of {len(self.undecided)} x If that depend on data ({some(self.undecided)}) the branch with more "
                "weights is the one that runs"
            )

    def _take(self, graph: Any, scope: _Scope) -> None:
        for proto in graph.initializer:
            scope.tensors[proto.name] = self._constant(proto.name, proto, scope)
        for sparse in graph.sparse_initializer:
            scope.tensors[sparse.values.name] = self._sparse(sparse.values.name, sparse, scope)
        for node in graph.node:
            self._operator(node, scope)

    def _operator(self, node: Any, scope: _Scope) -> None:
        """Find what one operator gives."""
        if not any(node.output):
            return
        name = scope.prefix + (node.name or next(iter(node.output), ""))
        node = _with_attributes(node, scope.attributes)
        inputs = [self._read(each, node, scope) if each else None for each in node.input]
        known = node.domain in KNOWN_DOMAINS
        if key_of(node) in self.functions:
            self._call(self.functions[key_of(node)], node, inputs, scope, name)
        elif known and node.op_type == "If":
            self._branch(node, inputs, scope, name)
        elif known and node.op_type in _LOOPS:
            raise InstanceError(
                f"{self.path}: operator '{name}' ({node.op_type}) is control flow that depends on data, which is not "
                "read; export the model without loops"
            )
        elif known and node.op_type in SEQUENCES:
            scope.tensors[node.output[0]] = self._of_sequence(node, inputs, scope, name)
        elif any(each is not None and each.members is not None for each in inputs):
            if not (known and node.op_type == "Identity"):
                raise InstanceError(
                    f"{self.path}: operator '{name}' ({node.op_type}) works on a sequence, which is not read"
                )
            scope.tensors[node.output[0]] = self._read(node.input[0], node, scope)
        elif known and node.op_type == "Constant":
            scope.tensors[node.output[0]] = self._constant_node(node, scope)
        else:
            self._plain(node, inputs, scope, name)

    def _of_sequence(self, node: Any, inputs: Sequence[Tensor | None], scope: _Scope, name: str) -> Tensor:
        """What an operator on a sequence gives, by those that take its place."""

        def take(made: Any) -> Tensor:
            if isinstance(made, str):
                return scope.tensors[made]
            self._operator(made, replace(scope, prefix=""))
            return scope.tensors[made.output[0]]

        version = scope.versions.get("", 1)
        return Rewriting(self.onnx, self.path, node, inputs, name, version, scope.tensors.__setitem__, take).output()

    def _read(self, tensor: str, node: Any, scope: _Scope) -> Tensor:
        found = scope.tensors.get(tensor)
        if found is None:
            name = scope.prefix + (node.name or next(iter(node.output), ""))
            raise InstanceError(
                f"{self.path}: operator '{name}' ({node.op_type}) reads '{tensor}', which nothing before makes"
            )
        return found

    def _call(self, function: Any, node: Any, inputs: Sequence[Tensor | None], scope: _Scope, name: str) -> None:
        """A function's operators with the call's inputs and attributes."""
        tensors = {each: given for each, given in zip(function.input, inputs, strict=False) if given is not None}
        attributes = {each.name: each for each in (*function.attribute_proto, *node.attribute)}
        versions = {_domain(each.domain): each.version for each in function.opset_import}
        own = _Scope(tensors, versions, ("function", *key_of(node)), f"{name}/", attributes)
        for each in function.node:
            self._operator(each, own)
        for outer, inner in zip(node.output, function.output, strict=False):
            if outer and inner in tensors:
                scope.tensors[outer] = tensors[inner]

    def _branch(self, node: Any, inputs: Sequence[Tensor | None], scope: _Scope, name: str) -> None:
        """The branch that runs, if the condition is known, and else the one with more weights."""
        branches = {each.name: each.g for each in node.attribute}
        condition = inputs[0].value if inputs and inputs[0] is not None else None
        if condition is None or condition.size != 1:
            self.undecided.append(name)
            chosen = max(("then_branch", "else_branch"), key=lambda each: self._weighs(branches.get(each), scope))
        else:
            chosen = "then_branch" if condition.reshape(()) else "else_branch"
        for each, graph in branches.items():
            place = (*scope.place, *node.output[:1], each)
            own = replace(scope, tensors=ChainMap({}, scope.tensors), place=place)
            if each != chosen:
                for other, proto in _named_protos(graph):
                    self._constant(other, proto, own)
                continue
            self._take(graph, own)
            for outer, inner in zip(node.output, graph.output, strict=False):
                scope.tensors[outer] = self._read(inner.name, node, own)

    def _weighs(self, graph: Any, scope: _Scope) -> int:
        """Numbers of weights that a branch reads, its own and others."""
        if graph is None:
            return -1
        own = sum(numbers(tuple(proto.dims)) for _, proto in _named_protos(graph) if _is_matrix(proto))
        read = {each for node in graph.node for each in node.input if each in scope.tensors}
        outer = {part for each in read for part in scope.tensors[each].parts}
        inner = sum(self._weighs(each, scope) for node in graph.node for each in graphs_of(node))
        return own + inner + sum(numbers(part.shape) for part in outer)

    def _constant_node(self, node: Any, scope: _Scope) -> Tensor:
        for entry in node.attribute:
            if entry.name == "value":
                return self._constant(node.output[0], entry.t, scope, inline=True)
            if entry.name == "sparse_value":
                return self._sparse(node.output[0], entry.sparse_tensor, scope)
        types = self.constants.types(node, [], scope.versions) or {}
        value = self.constants.values(node, [], types, scope.versions).get(node.output[0])
        kind = types.get(node.output[0], self.onnx.TypeProto())
        if value is None:
            return Tensor(kind)
        proto = self.onnx.numpy_helper.from_array(value) if value.dtype.kind in "fiub" else None
        return Tensor(kind) if proto is None else self._constant(node.output[0], proto, scope, inline=True)

    def _sparse(self, name: str, sparse: Any, scope: _Scope) -> Tensor:
        """Its numbers are those that are stored; the shape is that of the whole."""
        whole = self.onnx.helper.make_tensor_type_proto(sparse.values.data_type, tuple(sparse.dims))
        return replace(self._constant(name, sparse.values, scope), type=whole, value=None)

    def _constant(self, name: str, proto: Any, scope: _Scope, inline: bool = False) -> Tensor:
        """A stored tensor: weights, if it is of many numbers."""
        shape = tuple(proto.dims)
        if any(size < 0 for size in shape):
            raise InstanceError(f"{self.path}: the constant '{name}' has the shape {list(shape)}")
        kind = self.onnx.helper.make_tensor_type_proto(proto.data_type, shape)
        weights = proto.data_type in self.constants.floats or (
            proto.data_type in self.constants.packed and len(shape) > 1
        )
        part = (self._store(name, shape, scope, proto, inline),) if weights and numbers(shape) > 1 else ()
        return Tensor(kind, None, self.constants.value_of(proto), part, whole=not weights)

    def _store(self, name: str, shape: Shape, scope: _Scope, proto: Any = None, inline: bool = False) -> Stored:
        """What is stored under a name in a place, once however often the place is walked."""
        key = (*scope.place, name)
        if key not in self.stored:
            self.names[name] += 1
            unique = name if self.names[name] == 1 else f"{name}.{self.names[name]}"
            self.stored[key] = Stored(unique, shape, proto, inline)
        return self.stored[key]

    def _plain(self, node: Any, inputs: Sequence[Tensor | None], scope: _Scope, name: str) -> None:
        """An operator of ONNX, or of somebody's own."""
        kind = node.op_type if node.domain in KNOWN_DOMAINS else f"{node.domain}.{node.op_type}"
        try:
            types = self.constants.types(node, inputs, scope.versions)
        except ValueError as problem:
            raise InstanceError(
                f"{self.path}: operator '{name}' ({kind}): shapes do not fit together: {problem}"
            ) from None
        found = {each: self._type(each, types or {}, scope) for each in node.output if each}
        values = self.constants.values(node, inputs, found, scope.versions)
        constant = bool(values) or all(each is None or each.maker is None for each in inputs)
        if not constant:
            self.nodes.append(self._node(node, inputs, found, name, kind))
        for each, its in found.items():
            scope.tensors[each] = self._output(each, node, inputs, its, constant, values.get(each), scope)

    def _type(self, tensor: str, types: Mapping[str, Any], scope: _Scope) -> Any:
        """As inferred, or else as the file declares it."""
        found = types.get(tensor, self.onnx.TypeProto())
        declared = self.declared.get(tensor) if not scope.place else None
        if declared is not None and (not found.tensor_type.HasField("shape") or Tensor(found).shape is None):
            return declared
        return found

    def _output(
        self,
        tensor: str,
        node: Any,
        inputs: Sequence[Tensor | None],
        its: Any,
        constant: bool,
        value: Values | None,
        scope: _Scope,
    ) -> Tensor:
        element = its.tensor_type.elem_type
        whole = self.constants.is_whole(node, inputs, element)
        if not constant:
            return Tensor(its, len(self.nodes) - 1, None, (), whole)
        made = self.without_weights and node.op_type in _MADE and element in self.constants.floats
        if made and (shape := Tensor(its).shape) is not None:
            return Tensor(its, None, value, (self._store(tensor, shape, scope),))
        parts = self.constants.parts(node, inputs, element)
        if any(part.proto is None for part in parts) and node.op_type not in SAME_NUMBERS:
            parts = tuple(part for part in parts if part.proto is not None)
        if value is not None and Tensor(its).shape is None:
            its = self.onnx.helper.make_tensor_type_proto(element, value.shape)
        return Tensor(its, None, value, parts, whole)

    def _node(self, node: Any, inputs: Sequence[Tensor | None], types: Mapping[str, Any], name: str, kind: str) -> Node:
        used = [each for each in inputs if each is not None and each.maker is not None]
        for tensor, each in zip(node.input, inputs, strict=True):
            if each is not None and each.maker is not None and each.shape is None:
                raise self._no_size(tensor, name, kind)
        shape = Tensor(types[node.output[0]]).shape if node.output and node.output[0] else None
        if shape is None:
            raise self._no_size(next(iter(node.output), ""), name, kind)
        return Node(
            name,
            kind,
            tuple(dict.fromkeys(each.maker for each in used if each.maker is not None)),
            tuple((each.shape or ()) if each is not None and each.maker is not None else () for each in inputs),
            (shape,),
            tuple((each.shape or ()) if each is not None else () for each in inputs),
            {place: Weight(each.shape or (), each.parts) for place, each in enumerate(inputs) if each and each.parts},
            frozenset(place for place, each in enumerate(inputs) if each is not None and each.whole),
            {each.name: self.onnx.helper.get_attribute_value(each) for each in node.attribute},
        )

    def _no_size(self, tensor: str, name: str, kind: str) -> InstanceError:
        return InstanceError(f"{self.path}: the size of '{tensor}' at operator '{name}' ({kind}) cannot be found")


def _domain(domain: str) -> str:
    return "" if domain == "ai.onnx" else domain


def called(function: Any) -> FunctionKey:
    """How a function is called."""
    return _domain(function.domain), function.name, function.overload


def key_of(node: Any) -> FunctionKey:
    """The function that an operator calls, if there is one."""
    return _domain(node.domain), node.op_type, node.overload


def graphs_of(node: Any) -> Iterator[Any]:
    """Graphs inside an operator: branches and bodies of loops."""
    for entry in node.attribute:
        if entry.HasField("g"):
            yield entry.g
        yield from entry.graphs


def _protos(graph: Any) -> Iterator[Any]:
    """All tensors that a graph stores, in the graphs inside it too."""
    for _, proto in _named_protos(graph):
        yield proto
    for node in graph.node:
        for inner in graphs_of(node):
            yield from _protos(inner)


def _named_protos(graph: Any) -> Iterator[tuple[str, Any]]:
    """Tensors that a graph stores, with their names."""
    for proto in graph.initializer:
        yield proto.name, proto
    for node in graph.node:
        if node.op_type == "Constant" and any(node.output):
            for entry in node.attribute:
                if entry.HasField("t"):
                    yield node.output[0], entry.t


def _is_matrix(proto: Any) -> bool:
    return len([size for size in proto.dims if size > 1]) > 1


def _with_attributes(node: Any, attributes: Mapping[str, Any] | None) -> Any:
    """An operator of a function with the attributes of the call in place of those that it names."""
    if attributes is None or not _refers(node):
        return node
    filled = type(node)()
    filled.CopyFrom(node)
    _fill([filled], attributes)
    return filled


def _refers(node: Any) -> bool:
    return any(entry.ref_attr_name for entry in node.attribute) or any(
        _refers(inner) for graph in graphs_of(node) for inner in graph.node
    )


def _fill(nodes: Iterable[Any], attributes: Mapping[str, Any]) -> None:
    for node in nodes:
        kept = []
        for entry in node.attribute:
            if not entry.ref_attr_name:
                kept.append(entry)
            elif entry.ref_attr_name in attributes:
                given = type(entry)()
                given.CopyFrom(attributes[entry.ref_attr_name])
                given.name = entry.name
                kept.append(given)
        copies = [type(entry).FromString(entry.SerializeToString()) for entry in kept]
        del node.attribute[:]
        node.attribute.extend(copies)
        for graph in graphs_of(node):
            _fill(graph.node, attributes)
