r"""Compressors with their parameters: what each sends of a gradient, and what it loses.

A gradient of n numbers is p x q as a matrix. A worker sends, in bytes, and loses, relative to the squared norm:

============ =========================================== ==============================================================
compressor   sent                                        expected squared distance
============ =========================================== ==============================================================
none         4n                                          0
fp16         2n                                          2^-20 ln 2 / 18
top_k, dgc   8kn: places and values                      the energy of a normal variable below the quantile 1 - k
random_k     4kn: values, places from a shared seed      1 - k
qsgd         n / 8 times the bits of 2l + 1 levels, and  mean of (x - a)(b - x), a and b the levels around x
             4 for the norm of each 512
sign, onebit n / 8, and a mean (two)                     1 - 2/pi
powersgd     4r (p + q), two messages                    sum of j^-1.5 over r < j <= min(p, q), by that over all
sfb          4b (p + q), b rows of input                 0
============ =========================================== ==============================================================

Losses are those of entries drawn from one normal distribution (fp16: of significands spread evenly in logarithm);
PowerSGD's assumes that energies of singular values fall like j^-1.5. Both are assumptions: entries of real gradients
have heavier tails, of which top-k loses less.

References
----------
dgc: Lin et al. 2018, arXiv:1712.01887. qsgd: Alistarh et al. 2017, arXiv:1610.02132. sign: Karimireddy et al. 2019,
arXiv:1901.09847. onebit: Seide et al., Interspeech 2014. powersgd: Vogels et al. 2019, arXiv:1905.13727. sfb: Xie et
al., "Lighter-communication distributed machine learning via sufficient factor broadcasting", UAI 2016.
"""

import math
from dataclasses import dataclass
from typing import Any, Literal, get_args

from ddlopt.instances.workloads.compression.numpy_compressors import BUCKET
from ddlopt.models.compression.timeline.instance import Compressor
from ddlopt.models.errors import OptionError

Scope = Literal["all", "inter", "intra"]
_SCOPES: tuple[Scope, ...] = get_args(Scope)
_SPARSE = ("top_k", "dgc", "random_k")
_ADDED_UP = ("none", "fp16", "random_k", "powersgd")
_PARAMETER = {**dict.fromkeys(_SPARSE, "ratio"), "qsgd": "levels", "powersgd": "rank"}
# Of squared singular values, which fall as a power of their rank: an assumption.
_SPECTRUM = 1.5

ON_CPU = ("random_k", "dgc", "sign", "onebit")
"""Of which there are times on CPUs."""


@dataclass(frozen=True)
class Compression:
    """A compressor with its parameter, where it works and on what.

    Parameters
    ----------
    compressor : str
    parameter : float, optional
        Ratio of top_k, dgc and random_k, levels of qsgd, rank of powersgd.
    scope : {"all", "inter", "intra"}, optional
        None: what there is of ``inter`` and ``all``; only ``all`` of fp16, powersgd and sfb.
    device : {"gpu", "cpu"}
    """

    compressor: str
    parameter: float | None = None
    scope: Scope | None = None
    device: str = "gpu"

    @classmethod
    def from_words(cls, words: str) -> "Compression":
        """Read ``name[:parameter][/scope][/cpu]``, such as ``dgc:0.01/inter`` or ``powersgd:4``.

        Raises
        ------
        OptionError
            If it says something else, or the parameter is out of its range.
        """
        name, *places = words.split("/")
        compressor, _, parameter = name.partition(":")
        if compressor not in get_args(Compressor):
            raise OptionError(f"compressor is '{compressor}'; use one of: {', '.join(get_args(Compressor))}")
        device = "cpu" if places and places[-1] == "cpu" else "gpu"
        scopes = places[:-1] if device == "cpu" else places
        if len(scopes) > 1 or not set(scopes) <= set(get_args(Scope)):
            raise OptionError(
                f"compressor '{words}' ends in '/{'/'.join(places)}'; use /{', /'.join(get_args(Scope))} or /cpu"
            )
        scope = next((each for each in get_args(Scope) if each in scopes), None)
        if device == "cpu" and (compressor not in ON_CPU or scope not in (None, "inter")):
            raise OptionError(f"compressor '{words}': on CPUs there are {', '.join(ON_CPU)}, all between nodes")
        if scope not in (None, "all") and compressor in ("none", "powersgd", "sfb"):
            raise OptionError(f"compressor '{words}' works everywhere; leave out '/{scope}'")
        return cls(compressor, _parameter_of(words, compressor, parameter), scope, device)

    @property
    def added_up(self) -> bool:
        """Whether sums of what is sent are what the sum would be sent as."""
        return self.compressor in _ADDED_UP

    @property
    def fields(self) -> dict[str, Any]:
        """The compressor and its parameter as an :class:`Option` has them."""
        name = _PARAMETER.get(self.compressor)
        value = self.parameter if name == "ratio" or self.parameter is None else int(self.parameter)
        return {"compressor": self.compressor, "device": self.device} | ({} if name is None else {name: value})

    def label(self, scope: str | None) -> str:
        """For people: compressor, parameter, and the scope where it is worth saying."""
        shown = ""
        if self.parameter is not None:
            shown = f" {100 * self.parameter:g} %" if self.compressor in _SPARSE else f" {self.parameter:g}"
        return f"{self.compressor}{shown}{'' if scope is None else ' ' + scope}{' cpu' * (self.device == 'cpu')}"

    def payload_bytes(self, shape: tuple[int, ...], rows: int = 1) -> float:
        """What one worker sends of a gradient (P above); ``rows``: of the layer's input in its batch."""
        elements, sides = math.prod(shape), sum(matrix(shape))
        match self.compressor:
            case "fp16":
                return 2.0 * elements
            case "top_k" | "dgc":
                return 8.0 * kept(self.parameter, elements)
            case "random_k":
                return 4.0 * kept(self.parameter, elements)
            case "qsgd":
                bits = math.ceil(math.log2(2 * (self.parameter or 1) + 1))
                return bits * elements / 8 + 4.0 * math.ceil(elements / BUCKET)
            case "sign" | "onebit":
                return elements / 8 + (4.0 if self.compressor == "sign" else 8.0)
            case "powersgd":
                return 4.0 * (self.parameter or 1) * sides
            case "sfb":
                return 4.0 * rows * sides
        return 4.0 * elements

    def relative_error(self, shape: tuple[int, ...], passes: int = 1) -> float:
        """Part of a gradient's energy that is lost if it is compressed several times."""
        elements = math.prod(shape)
        match self.compressor:
            case "fp16":
                once = 2**-20 * math.log(2) / 18
            case "top_k" | "dgc":
                once = normal_tail_lost(kept(self.parameter, elements) / elements)
            case "random_k":
                once = 1 - kept(self.parameter, elements) / elements
            case "qsgd":
                once = rounding_of_normals(math.sqrt(min(BUCKET, elements)) / (self.parameter or 1))
            case "sign" | "onebit":
                once = 1 - 2 / math.pi
            case "powersgd":
                energies = [j**-_SPECTRUM for j in range(1, min(matrix(shape)) + 1)]
                once = math.fsum(energies[int(self.parameter or 1) :]) / math.fsum(energies)
            case _:
                once = 0.0
        return (1 + once) ** passes - 1 if self.compressor == "qsgd" else 1 - (1 - once) ** passes


def _parameter_of(words: str, compressor: str, text: str) -> float | None:
    name = _PARAMETER.get(compressor)
    if name is None:
        if text:
            raise OptionError(f"compressor '{words}': {compressor} takes no parameter")
        return None
    try:
        value = float(text)
    except ValueError:
        raise OptionError(f"compressor '{words}': {compressor} needs its {name}, as in '{compressor}:4'") from None
    if name == "ratio" and not 0 < value <= 1:
        raise OptionError(f"compressor '{words}': the ratio is {value:g}; it must be above 0 and at most 1")
    if name != "ratio" and not (value >= 1 and value.is_integer()):
        raise OptionError(f"compressor '{words}': {name} must be a whole number of at least 1, not {value:g}")
    return value


def matrix(shape: tuple[int, ...]) -> tuple[int, int]:
    """Rows and columns where all but the first dimension are flattened."""
    return (shape[0] if shape else 1), math.prod(shape[1:])


def kept(ratio: float | None, elements: int) -> int:
    """Numbers that a sparsifier sends of a gradient; at least one."""
    return max(1, min(elements, round((ratio or 0.0) * elements)))


def normal_tail_lost(ratio: float) -> float:
    r"""Part of the energy of normal variables below the threshold :math:`t` that the part ``ratio`` exceeds.

    The energy above is :math:`2 t \varphi(t) + k` with :math:`k = 2 (1 - \Phi(t))`.
    """
    low, high = 0.0, 40.0
    for _ in range(80):
        middle = (low + high) / 2
        low, high = (middle, high) if math.erfc(middle / math.sqrt(2)) > ratio else (low, middle)
    return max(0.0, 1 - 2 * low * _density(low) - ratio)


def rounding_of_normals(step: float) -> float:
    r"""Mean of :math:`(x - a)(b - x)` of a standard normal x, a and b the multiples of ``step`` around it.

    That is the variance of rounding x up or down at random without bias.
    """
    total, k = -1.0, 0
    while k * step < 12:
        low, high = k * step, (k + 1) * step
        mass = math.erfc(low / math.sqrt(2)) - math.erfc(high / math.sqrt(2))
        total += (low + high) * 2 * (_density(low) - _density(high)) - low * high * mass
        k += 1
    return max(0.0, total)


def _density(x: float) -> float:
    return math.exp(-x * x / 2) / math.sqrt(2 * math.pi)
