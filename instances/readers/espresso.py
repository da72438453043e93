"""Tensor lists of Espresso's authors: the gradients of a model and when each is there.

Either the file that they publish, byteps/torch/mergeComp/scheduler/model_tensor.py of zhuangwang93/Espresso
(Apache-2.0), measured on a V100. Of each model it has ``MODEL_tensor_sizes``, pairs of name and elements in the order
of the backward pass, and ``MODEL_time_gap``, the microseconds between each tensor and the one before. It is read as
data and never run: what these names are given must be literals, and everything else in the file is left aside. Or the
same of one model as a JSON object whose ``tensors`` are objects of ``name``, ``elements`` and ``backward_gap_us``;
``model`` and ``source`` are optional.

Costs are those of Espresso's planner (:mod:`ddlopt.instances.workloads.compression.planner_costs`). The planner itself
adds up the gaps modulo 1000, which drops whole milliseconds; ``wrapped_gaps`` does the same.
"""

import ast
import math
from collections.abc import Mapping
from itertools import accumulate
from pathlib import Path
from typing import Any

from ddlopt.instances.options import at_least, checked, one_of
from ddlopt.instances.readers.text_files import object_of, text_of
from ddlopt.instances.workloads.compression.compressors import Compression
from ddlopt.instances.workloads.compression.planner_costs import (
    ESPRESSO_COMPRESSORS,
    ESPRESSO_LANES,
    espresso_cluster,
    espresso_menu,
)
from ddlopt.models.compression import CompressionInstance, Gradient
from ddlopt.models.errors import InstanceError, OptionError

_SIZES, _GAPS = "_tensor_sizes", "_time_gap"
_NAMES = {theirs: ours for ours, theirs in ESPRESSO_COMPRESSORS.items()}


@checked
def read_espresso(
    path: str | Path,
    *,
    model: str | None = None,
    compressor: str = "dgc",
    ratio: float = 0.01,
    nodes: int = 8,
    gpus_per_node: int = 8,
    intra: str = "nvlink",
    two_level: bool = False,
    cpu: bool = False,
    lanes: bool = False,
    wrapped_gaps: bool = False,
    error_budget_part: float | None = None,
    name: str | None = None,
) -> CompressionInstance:
    """Which gradients to compress, by the costs of Espresso's planner.

    Parameters
    ----------
    path : str or Path
        ``.py``: ``model_tensor.py`` as published; ``.json`` or ``.json.gz``.
    model : str, optional
        Which of the models in ``model_tensor.py``, e.g. ``vgg16``; needed where it has several.
    compressor : {"randomk", "dgc", "efsignsgd", "onebit"}
        What gradients may be compressed by.
    ratio : float
        Part of the numbers that randomk and dgc keep.
    nodes, gpus_per_node : int
        Machines, and GPUs of each.
    intra : {"nvlink", "pcie"}
        What joins the GPUs of a node.
    two_level : bool
        Whether gradients may be compressed within nodes too.
    cpu : bool
        Whether they may be compressed on CPUs.
    lanes : bool
        Whether these are a lane of their own, as in the planner's simulator, instead of occupying the wire.
    wrapped_gaps : bool
        Add up gaps modulo 1000 us.
    error_budget_part : float, optional
        Error allowed, as a part of the energy of all gradients, which is taken as proportional to their elements.
    name : str, optional
        None: made from the model and the options.

    Raises
    ------
    InstanceError
        If the file cannot be read or is no such list.
    OptionError
        If an option is out of range.
    """
    one_of("compressor", compressor, tuple(_NAMES))
    one_of("intra", intra, ("nvlink", "pcie"))
    at_least("nodes", nodes, 1)
    at_least("gpus_per_node", gpus_per_node, 1)
    if not 0 < ratio <= 1:
        raise OptionError(f"ratio is {ratio:g}; it must be above 0 and at most 1")
    if error_budget_part is not None:
        at_least("error_budget_part", error_budget_part, 0)
    if lanes and not cpu:
        raise OptionError("lanes is true, but cpu is not; without compression on CPUs there is one wire")
    path = Path(path)
    data = _published(path, model) if path.suffix == ".py" else _read(path)
    if model is not None and path.suffix != ".py":
        raise OptionError(
            f"model chooses among the lists of model_tensor.py; {path.name} has one, leave the option out"
        )
    tensors = [_tensor(path, place, each) for place, each in enumerate(data["tensors"])]
    ours = _NAMES[compressor]
    compression = Compression(ours, ratio if ours in ("dgc", "random_k") else None)
    cluster, total = espresso_cluster(nodes, gpus_per_node, intra), sum(elements for _, elements, _ in tensors)
    sizes = {elements: place for place, elements in enumerate(dict.fromkeys(elements for _, elements, _ in tensors))}
    ready_us = accumulate(gap % 1000 if wrapped_gaps else gap for _, _, gap in tensors)
    called = str(data.get("model") or path.name.split(".")[0])
    told = f"{compressor}, {'two levels' if two_level else 'between nodes'}, {nodes} x {gpus_per_node} GPUs, {intra}"
    return CompressionInstance.from_data(
        {
            "name": name or f"{called.lower()}-{compressor}-n{nodes}x{gpus_per_node}-{intra}",
            "source": f"{path.name}: tensors and backward gaps as given there; costs of Espresso's planner, {told}; "
            f"errors assume normal entries, and energies proportional to elements",
            "gradients": [
                # From microseconds
                Gradient(name=each, shape=(elements,), ready_s=1e-6 * ready, menu=sizes[elements])
                for (each, elements, _), ready in zip(tensors, ready_us, strict=True)
            ],
            "menus": [
                espresso_menu(
                    (size,), cluster, compression, two_level=two_level, cpu=cpu, energy=size / total, lanes=lanes
                )
                for size in sizes
            ],
            "cluster": cluster,
            "error_budget": error_budget_part,
        }
        | ({"lanes": ESPRESSO_LANES} if lanes else {})
    )


def _read(path: Path) -> Mapping[str, Any]:
    expected = "an object with a list of tensors"
    data = object_of(path, expected)
    if not isinstance(data.get("tensors"), list):
        raise InstanceError(f"{path}: expected {expected}")
    if not data["tensors"]:
        raise InstanceError(f"{path}: tensors is empty")
    return data


def _published(path: Path, model: str | None) -> Mapping[str, Any]:
    """One model's list out of ``model_tensor.py``, in the form of the JSON object."""
    lists = _literals(path)
    known = [name.removesuffix(_SIZES) for name in lists if name.endswith(_SIZES)]
    if not known:
        raise InstanceError(f"{path}: nothing in it is called …{_SIZES}; expected model_tensor.py of Espresso")
    if model is None and len(known) > 1:
        raise OptionError(f"{path.name} has several models; choose one with model=…: {', '.join(known)}")
    chosen = known[0] if model is None else model
    if chosen not in known:
        raise OptionError(f"{path.name} has no model '{chosen}'; it has: {', '.join(known)}")
    sizes, gaps = lists[chosen + _SIZES], lists.get(chosen + _GAPS)
    if not isinstance(sizes, list) or not isinstance(gaps, list) or len(sizes) != len(gaps):
        counts = " and ".join(f"{len(each)}" if isinstance(each, list) else "no list" for each in (sizes, gaps))
        raise InstanceError(
            f"{path}: {chosen}{_SIZES} and {chosen}{_GAPS} must be lists with an entry for each tensor (got {counts})"
        )
    for place, pair in enumerate(sizes):
        if not isinstance(pair, tuple) or len(pair) != 2:
            raise InstanceError(f"{path}: {chosen}{_SIZES}[{place}] is {pair!r}; expected a pair of name and elements")
    tensors = [
        {"name": name, "elements": elements, "backward_gap_us": gap}
        for (name, elements), gap in zip(sizes, gaps, strict=True)
    ]
    if not tensors:
        raise InstanceError(f"{path}: {chosen}{_SIZES} is empty")
    return {"model": chosen, "tensors": tensors}


def _literals(path: Path) -> dict[str, Any]:
    """What a Python file assigns to names as literals; it is parsed and not run."""
    text = text_of(path)
    try:
        statements = ast.parse(text).body
    except (SyntaxError, ValueError, RecursionError, MemoryError) as problem:
        line = getattr(problem, "lineno", None)
        where = "" if line is None else f" at line {line}"
        raise InstanceError(f"{path}: cannot be read: it is no Python file{where}") from None
    found: dict[str, Any] = {}
    for statement in statements:
        match statement:
            case ast.Assign(targets=[ast.Name(id=name)], value=value) if name.endswith((_SIZES, _GAPS)):
                try:
                    found[name] = ast.literal_eval(value)
                except (ValueError, TypeError, RecursionError, MemoryError):
                    raise InstanceError(
                        f"{path}: {name} in line {statement.lineno} is calculated; expected a list of literals"
                    ) from None
    return found


def _tensor(path: Path, place: int, data: Any) -> tuple[str, int, float]:
    """Name, elements and gap of a tensor."""
    at = f"{path}: tensors[{place}]"
    if not isinstance(data, Mapping):
        raise InstanceError(f"{at} is {data!r}; expected an object of name, elements and backward_gap_us")
    for field in ("name", "elements", "backward_gap_us"):
        if field not in data:
            raise InstanceError(f"{at}.{field} is missing")
    name, elements, gap = data["name"], data["elements"], data["backward_gap_us"]
    if not isinstance(name, str):
        raise InstanceError(f"{at}.name is {name!r}; expected a text")
    if not isinstance(elements, int) or isinstance(elements, bool) or elements < 1:
        raise InstanceError(f"{at}.elements is {elements!r}; expected a whole number of at least 1")
    if not isinstance(gap, int | float) or isinstance(gap, bool) or not 0 <= gap < math.inf:
        raise InstanceError(
            f"{at}.backward_gap_us is {gap!r}; expected microseconds since the tensor before, at least 0"
        )
    return name, elements, gap
