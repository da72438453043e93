"""Inception-V3, layer by layer, and how its branches are connected."""

from collections.abc import Sequence
from dataclasses import dataclass

from ddlopt.instances.workloads.networks.layers import Layer, dense, normalisation, pooling, window_positions
from ddlopt.instances.workloads.networks.training_graph import GraphOperator, Need, Tape
from ddlopt.instances.workloads.training import Workload

# Side of an image, as in the paper.
_IMAGE = 299

Kernel = tuple[int, int]
"""Height and width."""


@dataclass(frozen=True)
class _Convolution:
    """A convolution without bias, its batch normalisation and ReLU; padded to keep the size unless ``valid``."""

    channels: int
    kernel: Kernel = (1, 1)
    stride: int = 1
    valid: bool = False


@dataclass(frozen=True)
class _Pooling:
    """Maximum, or mean that keeps the size."""

    mean: bool = False


Branch = Sequence["_Convolution | _Pooling | tuple[_Convolution, _Convolution]"]
"""One after the other; a pair reads the same input, and both outputs are put together."""


def _module(*branches: Branch) -> tuple[Branch, ...]:
    return branches


def _a(pooled: int) -> tuple[Branch, ...]:
    return _module(
        [_Convolution(64)],
        [_Convolution(48), _Convolution(64, (5, 5))],
        [_Convolution(64), _Convolution(96, (3, 3)), _Convolution(96, (3, 3))],
        [_Pooling(mean=True), _Convolution(pooled)],
    )


def _c(width: int) -> tuple[Branch, ...]:
    row, column = (1, 7), (7, 1)
    return _module(
        [_Convolution(192)],
        [_Convolution(width), _Convolution(width, row), _Convolution(192, column)],
        [
            _Convolution(width),
            *(_Convolution(width, kernel) for kernel in (column, row, column)),
            _Convolution(192, row),
        ],
        [_Pooling(mean=True), _Convolution(192)],
    )


def _e() -> tuple[Branch, ...]:
    pair = (_Convolution(384, (1, 3)), _Convolution(384, (3, 1)))
    return _module(
        [_Convolution(320)],
        [_Convolution(384), pair],
        [_Convolution(448), _Convolution(384, (3, 3)), pair],
        [_Pooling(mean=True), _Convolution(192)],
    )


_STEM: Branch = (
    _Convolution(32, (3, 3), 2, valid=True),
    _Convolution(32, (3, 3), valid=True),
    _Convolution(64, (3, 3)),
    _Pooling(),
    _Convolution(80),
    _Convolution(192, (3, 3), valid=True),
    _Pooling(),
)

_REDUCE_A = _module(
    [_Convolution(384, (3, 3), 2, valid=True)],
    [_Convolution(64), _Convolution(96, (3, 3)), _Convolution(96, (3, 3), 2, valid=True)],
    [_Pooling()],
)
_REDUCE_B = _module(
    [_Convolution(192), _Convolution(320, (3, 3), 2, valid=True)],
    [
        _Convolution(192),
        _Convolution(192, (1, 7)),
        _Convolution(192, (7, 1)),
        _Convolution(192, (3, 3), 2, valid=True),
    ],
    [_Pooling()],
)

_MODULES = (
    *(_a(pooled) for pooled in (32, 64, 64)),
    _REDUCE_A,
    *(_c(width) for width in (128, 160, 160, 192)),
    _REDUCE_B,
    _e(),
    _e(),
)


class _Network:
    """Lists layers, and records operators on a tape, while it goes through the modules."""

    def __init__(self) -> None:
        self.tape = Tape()
        self.layers: list[Layer] = []
        self.place = self.tape.data("images", 3 * _IMAGE**2)
        self.size, self.channels = _IMAGE, 3

    def sequence(self, name: str, parts: Branch) -> None:
        for number, part in enumerate(parts):
            self.step(f"{name}.{number}", part)

    def step(self, name: str, part: "_Convolution | _Pooling | tuple[_Convolution, _Convolution]") -> None:
        if isinstance(part, tuple):
            self.parallel(name, [[each] for each in part])
        elif isinstance(part, _Pooling):
            self.pool(name, part.mean)
        else:
            self.convolution(name, part)

    def parallel(self, name: str, branches: Sequence[Branch]) -> None:
        """Branches from the same input, and their outputs put together."""
        start = self.place, self.size, self.channels
        ends, widths = [], []
        for number, branch in enumerate(branches):
            self.place, self.size, self.channels = start
            self.sequence(f"{name}.{number}", branch)
            ends.append(self.place)
            widths.append(self.channels)
        self.place, self.channels = self.tape.concatenation(f"{name}.concat", ends), sum(widths)

    def pool(self, name: str, mean: bool) -> None:
        stride, padding = (1, 1) if mean else (2, 0)
        layer = pooling(name, self.channels, self.size, 3, stride, padding)
        self.layers.append(layer)
        needs: tuple[Need, ...] = () if mean else ("input", "output")
        self.place = self.tape.unary(name, self.place, layer.outputs, layer.flops, needs)
        self.size = window_positions(self.size, 3, stride, padding)

    def convolution(self, name: str, part: _Convolution) -> None:
        layer, self.size = _convolution_layer(f"{name}.conv", self.size, self.channels, part)
        norm = normalisation(f"{name}.norm", part.channels, self.size**2)
        self.layers += (layer, norm)
        inner = self.tape.normalisation(norm, self.tape.linear(layer, self.place), over_batch=True)
        self.place, self.channels = self.tape.unary(f"{name}.relu", inner, needs=("output",)), part.channels

    def classes(self, count: int) -> None:
        mean = pooling("pool", self.channels, self.size, self.size, 1)
        last = dense("classes", self.channels, count)
        self.layers += (mean, last)
        self.place = self.tape.linear(last, self.tape.unary(mean.name, self.place, mean.outputs, mean.flops))


def _convolution_layer(name: str, size: int, channels: int, part: _Convolution) -> tuple[Layer, int]:
    """The layer, and the size of the image after it."""
    rows, columns = part.kernel
    after = window_positions(size, rows, part.stride, 0) if part.valid else size
    weights = rows * columns * channels * part.channels
    shape = (part.channels, channels, rows, columns)
    return Layer(
        name,
        parameters=weights,
        flops=2 * weights * after**2,
        inputs=channels * size**2,
        outputs=part.channels * after**2,
        convolution=True,
        tensors=(("weight", shape),),
    ), after


def _network() -> _Network:
    network = _Network()
    network.sequence("stem", _STEM)
    for number, branches in enumerate(_MODULES):
        network.parallel(f"mixed.{number}", branches)
    network.classes(1000)
    return network


def inception_v3(batch_per_gpu: int) -> Workload:
    """Inception-V3 (Szegedy et al. 2016, arXiv:1512.00567) on 299 × 299 images, without the auxiliary classifier."""
    return Workload("inception-v3", tuple(_network().layers), batch_per_gpu)


def inception_step(workload: Workload) -> tuple[GraphOperator, ...]:
    """The operators of its training step; ``workload`` is the one above."""
    network = _network()
    return network.tape.loss(network.place, network.tape.data("labels", 1))
