"""Training jobs as the script of ``ddlopt profile-script`` measured them: which gradients there are, and when."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

from ddlopt.instances.generators.compression.timeline import timed
from ddlopt.instances.options import at_least, checked, one_of, positive
from ddlopt.instances.readers.text_files import object_of
from ddlopt.instances.workloads.networks.gradients import BackwardGradient
from ddlopt.instances.workloads.networks.layers import BYTES_PER_NUMBER
from ddlopt.instances.workloads.training import GIGABIT_PER_S
from ddlopt.models.compression import CompressionInstance
from ddlopt.models.errors import InstanceError
from ddlopt.models.topology import TopologyInstance

FORMAT = "ddlopt-profile/1"
# Points in time of different hooks, each the median of its own: a hundredth of the backward pass is no contradiction.
_LATE = 1.01


@dataclass(frozen=True)
class Profile:
    """A measured training step.

    Parameters
    ----------
    name, device : str
    samples : int
    forward_s, backward_s : float
    gradients : tuple of BackwardGradient
        In the order in which they are there.
    rows : dict of str to int
        Vectors that go into dense layers, by the name of the weight's gradient.
    unused : tuple of str
        Parameters without a gradient.
    apart : tuple of str
        Weights of modules that do not run themselves, so that the vectors that go into them are not known.
    """

    name: str
    device: str
    samples: int
    forward_s: float
    backward_s: float
    gradients: tuple[BackwardGradient, ...]
    rows: Mapping[str, int]
    unused: tuple[str, ...]
    apart: tuple[str, ...]

    @property
    def told(self) -> str:
        """Where the figures are from."""
        left = f", {len(self.unused)} parameters without a gradient left out" if self.unused else ""
        if self.apart:
            left += f", no sufficient factors of {len(self.apart)} matrices that another module multiplies by"
        return f"{self.samples} samples of a GPU, fp32; times measured on {self.device}{left}"


@checked
def read_profile(
    path: str | Path,
    *,
    nodes: int = 8,
    gpus_per_node: int = 8,
    intra: str = "nvlink",
    intra_gigabytes_per_s: float | None = None,
    network_gigabit_per_s: float = 25.0,
    latency_us: float | None = None,
    coding_us: dict[str, tuple[float, float]] | None = None,
    compressors: tuple[str, ...] | None = None,
    error_budget_part: float | None = None,
    fusion: bool = False,
    name: str | None = None,
) -> CompressionInstance:
    """Which gradients of a measured job to compress.

    Parameters
    ----------
    path : str or Path
        As ``profile_job.py`` writes it; its docstring has the fields.
    nodes, gpus_per_node, intra, intra_gigabytes_per_s, network_gigabit_per_s, latency_us, coding_us, compressors
        As in :func:`~ddlopt.instances.generators.compression.timeline.network`.
    error_budget_part, fusion
        Likewise.
    name : str, optional
    """
    profile = profile_of(Path(path))
    instance = timed(
        profile.gradients,
        profile.rows,
        profile.name,
        profile.told,
        nodes=nodes,
        gpus_per_node=gpus_per_node,
        intra=intra,
        intra_gigabytes_per_s=intra_gigabytes_per_s,
        network_gigabit_per_s=network_gigabit_per_s,
        latency_us=latency_us,
        coding_us=coding_us,
        compressors=compressors,
        error_budget_part=error_budget_part,
        fusion=fusion,
    )
    return instance if name is None else instance.model_copy(update={"name": name})


@checked
def read_profile_topology(
    path: str | Path,
    *,
    servers: int = 12,
    degree: int = 4,
    gigabit_per_s: float = 100.0,
    optics: str = "one_way",
    name: str | None = None,
) -> TopologyInstance:
    """The links for a measured job in data parallelism on all servers, one ring all-reduce an iteration.

    Parameters
    ----------
    path : str or Path
        As in :func:`read_profile`.
    servers, degree : int
    gigabit_per_s : float
        Of a link, per direction.
    optics : {"one_way", "duplex"}
    name : str, optional
    """
    at_least("servers", servers, 2)
    at_least("degree", degree, 1)
    positive("gigabit_per_s", gigabit_per_s)
    one_of("optics", optics, ("one_way", "duplex"))
    profile = profile_of(Path(path))
    numbers = sum(each.elements for each in profile.gradients)
    return TopologyInstance.from_data(
        {
            "name": name or f"{profile.name}-n{servers}-d{degree}",
            "source": f"{numbers} parameters, {profile.told}, data parallel",
            "servers": servers,
            "degree": degree,
            "link_bandwidth_bytes_per_s": gigabit_per_s * GIGABIT_PER_S,
            "optics": optics,
            "allreduce_groups": [{"members": range(servers), "gradient_bytes": BYTES_PER_NUMBER * numbers}],
            "traffic_bytes": [[0.0] * servers] * servers,
            "compute_s": profile.forward_s + profile.backward_s,
        }
    )


def profile_of(path: Path) -> Profile:
    """Read a profile.

    Raises
    ------
    InstanceError
        If it is none, or its figures contradict each other.
    """
    return profile_from(path, data_of(path))


def data_of(path: Path) -> Mapping[str, Any]:
    """What the file says, which :func:`profile_from` checks."""
    return object_of(path, "an object as profile_job.py writes it")


def profile_from(path: Path, data: Mapping[str, Any]) -> Profile:
    """The profile in what a file says.

    Raises
    ------
    InstanceError
        If it is none, or its figures contradict each other.
    """
    if data.get("format") != FORMAT:
        raise InstanceError(f"{path}: format is {data.get('format')!r}; expected '{FORMAT}', as profile_job.py writes")
    backward_s = _seconds(path, "backward_s", data.get("backward_s"))
    layers = {}
    for place, layer in enumerate(_list(path, data, "layers", least=0)):
        at = f"layers[{place}]"
        name = _text(path, f"{at}.name", layer.get("name"))
        for field in ("forward_s", "backward_s"):
            _seconds(path, f"{at}.{field} ('{name}')", layer.get(field))
        layers[name] = layer
    gradients = [
        _gradient(path, f"gradients[{place}]", each) for place, each in enumerate(_list(path, data, "gradients"))
    ]
    for (place, first), second in zip(enumerate(gradients, 1), gradients[1:], strict=False):
        if second.ready_s < first.ready_s:
            raise InstanceError(
                f"{path}: gradients[{place}] ('{second.name}') is ready after {second.ready_s:g} s, before the one in "
                f"front of it ({first.ready_s:g} s); list them in the order of ready_s"
            )
    unused = data.get("unused", [])
    if not isinstance(unused, list):
        raise InstanceError(f"{path}: unused is {unused!r}; expected a list of names")
    last = gradients[-1]
    if last.ready_s > _LATE * backward_s:
        raise InstanceError(
            f"{path}: gradient '{last.name}' is ready after {last.ready_s:g} s, but the backward pass takes "
            f"{backward_s:g} s"
        )
    return Profile(
        _text(path, "model", data.get("model")),
        str(data.get("device", "an unknown device")),
        _whole(path, "samples", data.get("samples")),
        _seconds(path, "forward_s", data.get("forward_s")),
        backward_s,
        tuple(gradients),
        _rows(path, data["gradients"], layers),
        tuple(str(each) for each in unused),
        tuple(each["name"] for each in data["gradients"] if _is_apart(each, layers)),
    )


def _gradient(path: Path, at: str, data: Mapping[str, Any]) -> BackwardGradient:
    name = _text(path, f"{at}.name", data.get("name"))
    shape = data.get("shape")
    if not isinstance(shape, list) or not shape:
        raise InstanceError(f"{path}: {at}.shape ('{name}') is {shape!r}; expected a list of whole numbers")
    sizes = tuple(_whole(path, f"{at}.shape ('{name}')", each) for each in shape)
    return BackwardGradient(name, sizes, _seconds(path, f"{at}.ready_s ('{name}')", data.get("ready_s")))


def _rows(
    path: Path, gradients: Sequence[Mapping[str, Any]], layers: Mapping[str, Mapping[str, Any]]
) -> dict[str, int]:
    """Of dense layers."""
    names, rows = [each["name"] for each in gradients], {}
    for first, second in pairwise(sorted(names)):
        if first == second:
            raise InstanceError(f"{path}: there are two gradients of '{first}'")
    for place, each in enumerate(gradients):
        layer = each.get("layer")
        if layer is not None and not isinstance(layer, str):
            raise InstanceError(f"{path}: gradients[{place}].layer ('{each['name']}') is {layer!r}; expected a name")
        measured = {} if layer is None else layers.get(layer, {})
        if "rows" in measured and len(each["shape"]) == 2:
            rows[each["name"]] = _whole(path, f"rows of layer '{layer}'", measured["rows"])
    return rows


def _is_apart(gradient: Mapping[str, Any], layers: Mapping[str, Mapping[str, Any]]) -> bool:
    """Whether it is of a matrix whose module does not run: ``nn.MultiheadAttention`` multiplies by that of another."""
    return len(gradient["shape"]) == 2 and gradient.get("layer") not in layers


def _list(path: Path, data: Mapping[str, Any], field: str, least: int = 1) -> list[Mapping[str, Any]]:
    found = data.get(field)
    if not isinstance(found, list) or len(found) < least:
        raise InstanceError(f"{path}: {field} is {'empty' if found == [] else 'missing'}; expected a list of objects")
    for place, each in enumerate(found):
        if not isinstance(each, Mapping):
            raise InstanceError(f"{path}: {field}[{place}] is {each!r}; expected an object")
    return found


def _seconds(path: Path, at: str, value: Any) -> float:
    if not isinstance(value, int | float) or isinstance(value, bool) or not 0 <= value < math.inf:
        raise InstanceError(f"{path}: {at} is {value!r}; expected seconds, at least 0")
    return float(value)


def _whole(path: Path, at: str, value: Any) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or value < 1:
        raise InstanceError(f"{path}: {at} is {value!r}; expected a whole number of at least 1")
    return value


def _text(path: Path, at: str, value: Any) -> str:
    if not isinstance(value, str) or not value:
        raise InstanceError(f"{path}: {at} is {value!r}; expected a name")
    return value
