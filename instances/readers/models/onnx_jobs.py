"""Networks in ONNX, for all problems."""

from functools import partial
from pathlib import Path

from ddlopt.instances.readers.models import jobs
from ddlopt.instances.readers.models.onnx_file import read_model
from ddlopt.instances.readers.models.onnx_layers import told_of, workload_of
from ddlopt.instances.readers.models.onnx_model import OnnxModel
from ddlopt.instances.readers.models.onnx_pieces import graph_of_model
from ddlopt.instances.readers.models.onnx_step import step_of


def onnx_network(path: str | Path, *, dims: tuple[str, ...] = ()) -> jobs.Network:
    """The network of a file.

    Layers, gradients and their shapes are those of the file; the backward pass is derived from its operators
    (:mod:`ddlopt.instances.readers.models.onnx_step`).

    Parameters
    ----------
    path : str or Path
        ``.onnx``; weights are not needed, and external ones are not looked for.
    dims : tuple of str
        ``name=size`` for dimensions that the file leaves open; the first one of an input is its samples.
    """
    model = read_model(path, dims)
    return jobs.Network(
        Path(path).stem,
        _told(model, Path(path)),
        partial(workload_of, model),
        partial(graph_of_model, model),
        partial(step_of, model),
    )


read_onnx = jobs.reader(onnx_network, jobs.compression)
read_onnx_topology = jobs.reader(onnx_network, jobs.topology)
read_onnx_codesign = jobs.reader(onnx_network, jobs.codesign)
read_onnx_deployment = jobs.reader(onnx_network, jobs.deployment)


def _told(model: OnnxModel, path: Path) -> str:
    return f"layers as in {path.name} ({len(model.nodes)} operators{told_of(model)})"
