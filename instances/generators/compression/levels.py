r"""How much to compress the gradients of a network, and at random.

Workers are identical, each with a link of its own; D of them, b bytes/s. A level costs on the wire

========== ============================================= ========================================================
compressor level                                         seconds of a level
========== ============================================= ========================================================
powersgd   rank of both factors, all-reduced             :math:`4 (p + q) \cdot 2 (D-1)/D / b`
top_k      entry kept: place and value, all-gathered     :math:`8 (D-1) / b`
qsgd       bit of every number, all-gathered             :math:`n (D-1) / (8 b)`
========== ============================================= ========================================================

and every message 10 µs for each step of its ring (two messages of powersgd; qsgd also sends 4 bytes for each bucket of
512 numbers). Biases, scales and shifts are all-reduced as they are: their curves have a single level without error.
With ``overlap`` gradients are ready as the backward pass of a V100 has them, and encoded and decoded: powersgd by
products at the rates of the roofline, started in 10 µs each, three for each column in Gram-Schmidt; the others in the
times that Espresso's planner has for dgc and sign (``instances.workloads.compression.costs`` has the source), for 2^20
numbers or fewer. Decoding occupies the wire's lane. Without ``overlap`` there is nothing but messages.

Errors are parts of the energy (squared norm) of all gradients that are compressed. Real spectra are not bundled;
*assumed* is:

- the energy of a gradient is in proportion to the root of its numbers, times :math:`e^{x/2}`, x standard normal;
- powersgd: the energies of singular values fall like :math:`j^{-a}`, a drawn around 1.5; the error of rank r is the
  tail behind it;
- top_k: entries have a generalised normal distribution, :math:`e^{-|x|^\beta}`, :math:`\beta` drawn around 1, a Laplace
  distribution. With the regularised incomplete gamma functions P and Q, k of n entries leave
  :math:`P(3/\beta, t)`, :math:`Q(1/\beta, t) = k/n`;
- qsgd: nothing, as its error is a bound. With b bits, one of them a sign, numbers are rounded up or down at random to
  multiples of :math:`\lVert v \rVert / s, s = 2^{b-1} - 1`, which has a variance of at most a quarter of the step
  squared: :math:`d / 4s^2` of the energy for buckets of d numbers. As b is at least 3, this is at most
  :math:`\tfrac{16}{9} d\, 4^{-b}`, the curve. (The bound that its authors give, the lesser of :math:`d / s^2` and
  :math:`\sqrt d / s`, is the better one only if :math:`s < \sqrt d / 4`: with 3 bits.)

References
----------
T. Vogels et al., "PowerSGD: Practical low-rank gradient compression for distributed optimization", NeurIPS 2019;
D. Alistarh et al., "QSGD: Communication-efficient SGD via gradient quantization and encoding", NeurIPS 2017.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import special

from ddlopt.instances.options import at_least, one_of, part, positive
from ddlopt.instances.workloads import V100, Workload
from ddlopt.instances.workloads.networks.gradients import BackwardGradient, backward_gradients
from ddlopt.instances.workloads.networks.published import bert, gpt2, resnet50, vgg16
from ddlopt.instances.workloads.training import GIGABIT_PER_S
from ddlopt.models.compression import ExponentialCurve, GradedGradient, LevelInstance, PointCurve
from ddlopt.models.compression.levels.arrays import LevelArrays
from ddlopt.models.compression.levels.uniform import uniform_coordinates, uniform_places
from ddlopt.models.errors import OptionError
from ddlopt.models.tolerances import FEASIBILITY_TOL

_NETWORKS: dict[str, Callable[[], Workload]] = {
    "vgg16": lambda: vgg16(32),
    "resnet50": lambda: resnet50(32),
    "bert": lambda: bert(12, 768, 128, 16),
    "gpt2": lambda: gpt2(4),
}
"""Of the sizes in which each is best known; the mini-batch of a GPU is our choice."""

NETWORKS, COMPRESSORS = tuple(_NETWORKS), ("powersgd", "top_k", "qsgd")

_LIKE = {"powersgd": 4.0, "top_k": 0.01, "qsgd": 5.0}
# Ten microseconds each, as for the timelines (``workloads.compression.costs``).
_MESSAGE_S, _KERNEL_S = 10e-6, 10e-6
# The size that coding times are given for, and QSGD's usual bucket.
_MEGA, _BUCKET = 2**20, 512
_CODING_S = {"top_k": (356e-6, 34e-6), "qsgd": (130e-6, 140e-6)}
"""Encoding and decoding of 2^20 numbers."""
# Of QSGD: an assumption; 3 bits are a sign and 4 levels.
_FEWEST_BITS, _MOST_BITS = 3, 10
# A tenth of DGC's density of a thousandth, and a rank beyond which messages are hardly smaller: assumptions.
_LEAST_KEPT, _HIGHEST_RANK = 1e-4, 128
# Exponent of singular values squared, drawn evenly around 1.5: an assumption, as of ``compressors``.
_DECAY, _DECAY_SPREAD = 1.5, 0.4
# Shape of the distribution of entries, drawn evenly around Laplace's 1: an assumption.
_TAIL, _TAIL_SPREAD = 1.0, 0.4


@dataclass(frozen=True)
class _Network:
    """What gradients cost and lose; see the module."""

    compressor: str
    workers: int
    bandwidth_bytes_per_s: float
    overlap: bool
    points: int

    def gradient(self, rng: np.random.Generator, each: BackwardGradient, energy: float) -> GradedGradient:
        """A gradient with its curve; ``energy`` is its part of all of it."""
        sending = self._whole(each) if len(each.shape) < 2 else self._compressed(rng, each, energy)
        coding = self._coding(each) if self.overlap and len(each.shape) > 1 else {}
        launch = coding.pop("launch_s", 0.0) + sending.pop("launch_s")
        per_level = coding.pop("wire_s_per_level", 0.0) + sending.pop("wire_s_per_level")
        figures = coding | {"launch_s": launch, "wire_s_per_level": per_level}
        figures["ready_s"] = each.ready_s if self.overlap else 0.0
        fields = {"name": each.name, "shape": each.shape, "compressor": self.compressor, **sending}
        return GradedGradient.model_validate(fields | {name: _short(figure) for name, figure in figures.items()})

    @property
    def _all_reduced(self) -> float:
        """Seconds on the wire for a byte that is all-reduced."""
        return 2 * (self.workers - 1) / self.workers / self.bandwidth_bytes_per_s

    @property
    def _gathered(self) -> float:
        """Seconds on the wire for a byte of every worker that all the others get."""
        return (self.workers - 1) / self.bandwidth_bytes_per_s

    def _whole(self, each: BackwardGradient) -> dict[str, Any]:
        """A vector, which is not compressed: rank 1, all entries, or 32 bits."""
        level = {"powersgd": 1, "top_k": each.elements, "qsgd": 32}[self.compressor]
        return {
            "curve": PointCurve(levels=(level,), errors=(0.0,)),
            "launch_s": 2 * (self.workers - 1) * _MESSAGE_S,
            "wire_s_per_level": 4 * each.elements * self._all_reduced / level,
        }

    def _compressed(self, rng: np.random.Generator, each: BackwardGradient, energy: float) -> dict[str, Any]:
        rows, columns = each.shape[0], each.elements // each.shape[0]
        ring = (self.workers - 1) * _MESSAGE_S
        if self.compressor == "powersgd":
            highest = min(rows, columns, _HIGHEST_RANK, max(1, (rows * columns - 1) // (rows + columns)))
            decay = _DECAY + _DECAY_SPREAD * rng.uniform(-1, 1)
            levels = _grid(1, highest, self.points)
            ends = special.zeta(decay, [1, *(levels + 1), min(rows, columns) + 1])
            curve: Any = _points(levels, energy * (ends[1:-1] - ends[-1]) / (ends[0] - ends[-1]))
            return {
                "curve": curve,
                "launch_s": 4 * ring,
                "wire_s_per_level": 4 * (rows + columns) * self._all_reduced,
            }
        if self.compressor == "top_k":
            lowest, highest = (max(1, round(density * each.elements)) for density in (_LEAST_KEPT, 1 / self.workers))
            beta = _TAIL + _TAIL_SPREAD * rng.uniform(-1, 1)
            levels = _grid(lowest, highest, self.points)
            lost = special.gammainc(3 / beta, special.gammainccinv(1 / beta, levels / each.elements))
            return {"curve": _points(levels, energy * lost), "launch_s": ring, "wire_s_per_level": 8 * self._gathered}
        scale = energy * min(_BUCKET, each.elements) / (1 - 2.0 ** (1 - _FEWEST_BITS)) ** 2
        norms_s = 4 * math.ceil(each.elements / _BUCKET) * self._gathered
        return {
            "curve": ExponentialCurve(lowest=_FEWEST_BITS, highest=_MOST_BITS, scale=_short(scale)),
            "launch_s": ring + norms_s,
            "wire_s_per_level": each.elements / 8 * self._gathered,
        }

    def _coding(self, each: BackwardGradient) -> dict[str, float]:
        """Encoding, and decoding as part of the wire's figures."""
        if self.compressor == "powersgd":
            product_s = 2 * each.elements / V100.flops_per_s
            reading_s = 4 * each.elements / V100.memory_bytes_per_s
            return {
                "encode_s": 2 * (reading_s + _KERNEL_S),
                "encode_s_per_level": 2 * product_s + 3 * _KERNEL_S,
                "launch_s": reading_s + _KERNEL_S,
                "wire_s_per_level": product_s,
            }
        encode, decode = (max(1.0, each.elements / _MEGA) * seconds for seconds in _CODING_S[self.compressor])
        return {"encode_s": encode, "launch_s": decode}


def network(
    rng: np.random.Generator,
    model: str = "vgg16",
    compressor: str = "powersgd",
    workers: int = 8,
    network_gigabit_per_s: float = 10.0,
    overlap: bool = True,
    goal: str = "time",
    like: float | None = None,
    points: int = 24,
) -> LevelInstance:
    """The gradients of a neural network.

    Parameters
    ----------
    model : {"vgg16", "resnet50", "bert", "gpt2"}
    compressor : {"powersgd", "top_k", "qsgd"}
    workers : int
    network_gigabit_per_s : float
        Of each worker's link.
    overlap : bool
        Whether communication overlaps the backward pass; without, there is nothing but messages.
    goal : {"time", "error"}
    like : float, optional
        Rank, part of the entries or number of bits which, if it is the same for all gradients, has the error (or takes
        the time) that is the budget. By default 4, 0.01 and 5.
    points : int
        Most levels of a gradient for powersgd and top_k.
    """
    one_of("model", model, NETWORKS)
    one_of("compressor", compressor, COMPRESSORS)
    one_of("goal", goal, ("time", "error"))
    at_least("workers", workers, 2)
    at_least("points", points, 2)
    positive("network_gigabit_per_s", network_gigabit_per_s)
    like = _LIKE[compressor] if like is None else like
    positive("like", like)
    costs = _Network(compressor, workers, network_gigabit_per_s * GIGABIT_PER_S, overlap, points)
    tensors = backward_gradients(_NETWORKS[model](), V100)
    energies = np.array([math.sqrt(each.elements) * (len(each.shape) > 1) for each in tensors])
    energies *= np.exp(0.5 * rng.standard_normal(len(tensors)))
    energies /= energies.sum()
    pairs = zip(tensors, energies.tolist(), strict=True)
    gradients = tuple(costs.gradient(rng, each, energy) for each, energy in pairs)
    what = {"powersgd": "rank {:g}", "top_k": "{:g} of the entries", "qsgd": "{:g} bits"}[compressor]
    source = f"The budget is that of {what.format(like)} for every gradient; spectra are assumed"
    return _with_budget(f"{model}-{compressor}", gradients, goal, like, source)


def _with_budget(
    name: str, gradients: tuple[GradedGradient, ...], goal: str, like: float, source: str
) -> LevelInstance:
    """The instance whose budget is what the uniform choice at ``like`` uses."""
    draft = LevelInstance(name=name, gradients=gradients, error_budget=1e99)
    arrays, table = LevelArrays(draft), uniform_coordinates(draft)
    largest = max(each.curve.allowed[-1] / _counted_in(each) for each in gradients if len(each.curve.allowed) > 1)
    graded = arrays.counts > 1
    places = uniform_places(arrays, table, like / largest * float(table[graded].max()) * (1 + FEASIBILITY_TOL))
    if goal == "time":
        budget = {"error_budget": math.fsum(arrays.errors_at(places).tolist())}
    else:
        budget = {"time_budget_s": arrays.time_s(arrays.levels_at(places))}
    return LevelInstance.from_data({"name": name, "source": source, "gradients": gradients, "goal": goal, **budget})


def _counted_in(each: GradedGradient) -> int:
    return math.prod(each.shape) if each.compressor == "top_k" else 1


def random_levels(
    rng: np.random.Generator,
    gradients: int = 20,
    points: int = 10,
    curved_part: float = 0.5,
    overlap: bool = True,
    goal: str = "time",
    budget_part: float = 0.3,
) -> LevelInstance:
    """Gradients with curves at random: points with falling slopes, or exponential.

    Parameters
    ----------
    gradients : int
    points : int
        Most points of a curve.
    curved_part : float
        Probability that a curve is exponential.
    overlap : bool
        Whether gradients are ready one after the other, and encoded.
    goal : {"time", "error"}
    budget_part : float
        Where the budget is, between the lowest and the highest levels' error (or time).
    """
    at_least("gradients", gradients, 1)
    at_least("points", points, 1)
    part("curved_part", curved_part)
    part("budget_part", budget_part)
    one_of("goal", goal, ("time", "error"))
    ready = np.sort(rng.uniform(0, 1e-3 * gradients, gradients)) if overlap else np.zeros(gradients)
    made = []
    for place in range(gradients):
        curved = rng.random() < curved_part
        made.append(
            GradedGradient(
                name=f"gradient-{place}",
                shape=(64, 64),
                compressor="qsgd" if curved else "top_k",
                ready_s=_short(ready[place]),
                curve=_random_exponential(rng) if curved else _random_points(rng, points),
                encode_s=_short(rng.uniform(0, 1e-4)) if overlap else 0.0,
                encode_s_per_level=_short(rng.uniform(0, 2e-5)) if overlap else 0.0,
                launch_s=_short(rng.uniform(0, 1e-4)),
                wire_s_per_level=_short(1e-4 * rng.lognormal()),
            )
        )
    draft = LevelInstance(name="levels", gradients=tuple(made), error_budget=1e99)
    arrays = LevelArrays(draft)
    if goal == "time":
        most = math.fsum(arrays.errors[:, 0].tolist())
        budget = {"error_budget": draft.least_error + budget_part * (most - draft.least_error)}
    else:
        least = arrays.least_time_s()
        budget = {"time_budget_s": least + budget_part * (arrays.time_s(arrays.highest) - least)}
    return LevelInstance.from_data({"name": "levels", "gradients": tuple(made), "goal": goal, **budget})


def _random_exponential(rng: np.random.Generator) -> ExponentialCurve:
    lowest = int(rng.integers(1, 4))
    return ExponentialCurve(lowest=lowest, highest=lowest + int(rng.integers(0, 8)), scale=_short(rng.lognormal(2.0)))


def _random_points(rng: np.random.Generator, points: int) -> PointCurve:
    count = int(rng.integers(1, points + 1))
    levels = np.cumsum(rng.integers(1, 4, count))
    slopes = np.sort(rng.lognormal(-2.0, 1.5, count - 1))
    falls = np.append(slopes[::-1] * np.diff(levels), rng.choice([0.0, 0.01]))
    return _points(levels, np.cumsum(falls[::-1])[::-1])


def _grid(lowest: int, highest: int, points: int) -> npt.NDArray[np.int64]:
    """Whole numbers of about equal ratios, both ends among them."""
    return np.unique(np.geomspace(lowest, max(lowest, highest), points).round().astype(np.int64))


def _points(levels: npt.NDArray[np.int64], errors: npt.NDArray[np.float64]) -> PointCurve:
    """The curve of a convex function; rounding to six digits may cost points that are then above the others' lines."""
    hull: list[tuple[int, Fraction]] = []
    for level, error in zip(levels.tolist(), (_short(each) for each in errors), strict=True):
        point = level, Fraction(error)
        if hull and point[1] >= hull[-1][1]:
            continue
        while len(hull) > 1 and _above(hull[-2], hull[-1], point):
            hull.pop()
        hull.append(point)
    return PointCurve(levels=tuple(level for level, _ in hull), errors=tuple(float(error) for _, error in hull))


def _above(first: tuple[int, Fraction], middle: tuple[int, Fraction], last: tuple[int, Fraction]) -> bool:
    """Whether a point is on or above the line between its neighbours."""
    left, right = (middle[1] - first[1]) * (last[0] - middle[0]), (last[1] - middle[1]) * (middle[0] - first[0])
    return left >= right


def _short(figure: float) -> float:
    """Six significant digits."""
    if not math.isfinite(figure):
        raise OptionError(f"a figure of the instance would be {figure}; use less extreme options")
    return float(f"{figure:.6g}")
