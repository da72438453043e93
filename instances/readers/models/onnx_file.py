"""Files in ONNX, an open format of neural networks (https://onnx.ai), read as data with every tensor's size known.

The package ``onnx`` parses the file and has the rules for shapes. Weights themselves are not needed: those that the
file keeps beside itself are not looked for.
"""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from ddlopt.instances.readers.models.onnx_graph import KNOWN_DOMAINS, FunctionKey, Walk, called, graphs_of, key_of
from ddlopt.instances.readers.models.onnx_model import OnnxModel
from ddlopt.instances.readers.models.onnx_weights import Judge, left_out, renamed, tied
from ddlopt.models.errors import InstanceError, OptionError
from ddlopt.models.reading import UnreadableError, read_bytes

_SHOWN = 5
"""Names in a message, at most."""
_MOST_OPERATORS = 100_000
"""With all functions written out; networks of a hundred blocks have ten thousand."""
_MOST_NESTED = 60
"""Functions in functions; a module of PyTorch is one."""


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
        If the file is no model, has functions without end, or the size of a tensor cannot be found.
    """
    onnx = _package()
    model = _loaded(onnx, Path(path))
    _refuse_endless(model, Path(path))
    samples = _set_sizes(model.graph, _sizes(dims), Path(path))
    walk = Walk(onnx, model, Path(path))
    outputs = tuple(dict.fromkeys(walk.all()))
    if not outputs:
        raise InstanceError(f"{path}: its output does not depend on what comes into the model")
    judge = Judge(tuple(walk.stored.values()))
    nodes = [judge.trained(node) for node in walk.nodes]
    twice, maybe = tied(nodes)
    notes = (*walk.notes(), *judge.notes(), *maybe)
    stored = [part for part in judge.stored if part.name not in twice]
    unused = left_out(stored, walk.nodes, nodes)
    if twice:
        nodes = [renamed(node, twice) for node in nodes]
    name = model.graph.name or Path(path).stem
    return OnnxModel(name, samples, tuple(walk.inputs), tuple(nodes), outputs, unused, notes)


def _package() -> Any:
    try:
        import onnx
        import onnx.reference
        import onnx.shape_inference
    except ImportError:
        raise OptionError("ONNX files are read by the package onnx; install it: pip install 'ddlopt[onnx]'") from None
    return onnx


def _loaded(onnx: Any, path: Path) -> Any:
    from google.protobuf.message import DecodeError  # type: ignore[import-untyped]

    try:
        model = onnx.ModelProto.FromString(read_bytes(path))
    except UnreadableError as problem:
        raise InstanceError(f"{path}: cannot be read: {problem}") from None
    except (DecodeError, ValueError):
        raise InstanceError(f"{path}: it is no ONNX file, or a part of one") from None
    if not _is_text(model):
        raise InstanceError(f"{path}: it is no ONNX file, or a damaged one: names in it are no text")
    if not model.graph.node:
        raise InstanceError(f"{path}: it is no ONNX file, or a part of one: it has no operators")
    known = onnx.defs.onnx_opset_version()
    for entry in (*model.opset_import, *(entry for function in model.functions for entry in function.opset_import)):
        if entry.domain in KNOWN_DOMAINS and not 1 <= entry.version <= known:
            raise InstanceError(f"{path}: it has operator set {entry.version}; the package onnx knows 1 to {known}")
    return model


def _is_text(message: Any) -> bool:
    """Whether all strings in it are UTF-8; the parser leaves others as bytes."""
    for field, value in message.ListFields():
        if field.type not in (field.TYPE_STRING, field.TYPE_MESSAGE):
            continue
        for each in [value] if isinstance(value, str | bytes) or hasattr(value, "ListFields") else value:
            if isinstance(each, bytes) or (field.type == field.TYPE_MESSAGE and not _is_text(each)):
                return False
    return True


def _refuse_endless(model: Any, path: Path) -> None:
    """Refuse functions that call themselves, or each other so often that nobody could write them out."""
    functions = {called(function): function for function in model.functions}
    sizes: dict[FunctionKey, int] = {}

    def size(nodes: Iterable[Any], inside: Sequence[FunctionKey]) -> int:
        total = 0
        for node in nodes:
            key = key_of(node)
            total += 1 + sum(size(graph.node, inside) for graph in graphs_of(node))
            if key not in functions:
                continue
            if key in inside:
                raise InstanceError(
                    f"{path}: the function '{key[1]}' calls itself, so it has no finite list of operators"
                )
            if len(inside) == _MOST_NESTED:
                raise InstanceError(f"{path}: functions are nested more than {_MOST_NESTED} deep, at '{key[1]}'")
            if key not in sizes:
                sizes[key] = size(functions[key].node, (*inside, key))
            total += sizes[key]
        return total

    total = size(model.graph.node, ())
    if total > _MOST_OPERATORS:
        raise InstanceError(
            f"{path}: with its functions written out it has {total} operators; at most {_MOST_OPERATORS} are read"
        )


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
    for entry in (*graph.value_info, *graph.output):
        for dim in entry.type.tensor_type.shape.dim:
            if dim.dim_param in given:
                dim.dim_value = given[dim.dim_param]
    return samples or 1


def _listed(names: Iterable[str]) -> str:
    distinct = list(dict.fromkeys(names))
    more = f" and {len(distinct) - _SHOWN} more" if len(distinct) > _SHOWN else ""
    return ", ".join(f"'{name}'" for name in distinct[:_SHOWN]) + more
