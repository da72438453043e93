"""Up to which bandwidth and batch sufficient factors pay, as a table and a picture."""

from collections.abc import Mapping, Sequence
from math import inf, isfinite
from typing import Any, NamedTuple

from matplotlib.ticker import FuncFormatter, NullLocator

from ddlopt.analysis.sfb_thresholds import thresholds
from ddlopt.instances.workloads.training import GIGABIT_PER_S
from ddlopt.models.compression import SfbInstance
from ddlopt.models.errors import OptionError

_COLOURS = ("#1f6fb4", "#d95f02", "#3a9d5d", "#8c4a9e", "#b8860b", "#5f6b76", "#c0392b", "#17a2b8")


class Pays(NamedTuple):
    """Up to where a gradient is worth sending as factors.

    Parameters
    ----------
    operator : int
    gradient : str
        Name of the operator.
    gradient_bytes, factor_bytes : float
        What is all-reduced, and all that the operator reads, of all samples.
    bandwidth_bytes_per_s : float
        The largest at which it is worth it; 0: at none, infinite: at any. All bandwidths change together.
    batch : float
        The largest, as a multiple of the instance's.
    """

    operator: int
    gradient: str
    gradient_bytes: float
    factor_bytes: float
    bandwidth_bytes_per_s: float
    batch: float


def pays(instance: SfbInstance) -> tuple[Pays, ...]:
    """All gradients that are all-reduced, by place; see :func:`~.thresholds`.

    Raises
    ------
    NotApplicableError
        If the instance has budgets.
    """
    read = dict.fromkeys(range(instance.size), 0.0)
    for tensor in instance.tensors:
        for consumer in tensor.consumers:
            read[consumer] += tensor.size_bytes
    rows = []
    for bandwidth, batch in zip(thresholds(instance, "bandwidth"), thresholds(instance, "batch"), strict=True):
        operator = instance.operators[bandwidth.operator]
        rows.append(
            Pays(
                bandwidth.operator,
                operator.name,
                operator.gradient_bytes,
                read[bandwidth.operator],
                operator.bandwidth_bytes_per_s * bandwidth.scale,
                batch.scale,
            )
        )
    return tuple(rows)


def table(instance: SfbInstance, samples: float | None = None, least_bytes: float = 0.0) -> str:
    """A Markdown table of :func:`pays`, the first layers first.

    Parameters
    ----------
    instance : SfbInstance
    samples : float, optional
        In the instance's batch, of all devices. Without, batches are told as multiples of it.
    least_bytes : float
        Smaller gradients are left out.

    Raises
    ------
    NotApplicableError
        If the instance has budgets.
    """
    unit = "× this batch" if samples is None else "samples of all devices"
    head = ("gradient", "MB", "factors, MB", "pays below, Gb/s", f"pays below, {unit}")
    lines = [head, ("---", *["---:"] * 4)]
    for row in reversed(pays(instance)):
        if row.gradient_bytes >= least_bytes:
            figures = (row.gradient_bytes / 1e6, row.factor_bytes / 1e6)
            limits = (row.bandwidth_bytes_per_s / GIGABIT_PER_S, row.batch * (samples or 1.0))
            lines.append((row.gradient, *(f"{x:.4g}" for x in figures), *(_limit_text(x) for x in limits)))
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def _limit_text(value: float) -> str:
    if value == 0:
        return "never"
    return f"{value:,.4g}" if isfinite(value) else "always"


def draw(axes: Any, instances: Mapping[str, SfbInstance], least_bytes: float = 0.0, title: str = "") -> None:
    """Draw, for every gradient from the first layer to the last, the bandwidth below which it is sent as factors.

    Parameters
    ----------
    axes : matplotlib.axes.Axes
    instances : mapping of str to SfbInstance
        Of one network, a line for each, by what distinguishes them.
    least_bytes : float
        Smaller gradients are left out.
    title : str

    Raises
    ------
    OptionError
        If the instances have different gradients, or none.
    NotApplicableError
        If one has budgets.
    """
    lines = {label: _shown(instance, least_bytes) for label, instance in instances.items()}
    names = [[row.gradient for row in rows] for rows in lines.values()]
    if not names or not names[0]:
        raise OptionError("there are no thresholds to draw: no gradient is all-reduced")
    if any(each != names[0] for each in names):
        raise OptionError("only instances of one network share a picture; these have different gradients")
    finite = [
        row.bandwidth_bytes_per_s / GIGABIT_PER_S
        for rows in lines.values()
        for row in rows
        if 0 < row.bandwidth_bytes_per_s < inf
    ] or [1.0]
    lowest, highest = min(finite) / 3, max(finite) * 3
    places = range(len(names[0]))
    for (label, rows), colour in zip(lines.items(), _repeated(_COLOURS, len(lines)), strict=True):
        heights = [min(max(row.bandwidth_bytes_per_s / GIGABIT_PER_S, lowest), highest) for row in rows]
        axes.plot(places, heights, color=colour, marker="o", markersize=3, linewidth=1, label=label)
    axes.set_yscale("log")
    axes.set_ylim(lowest / 1.3, highest * 1.3)
    axes.set_xlim(-0.5, len(names[0]) - 0.5)
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,g}"))
    axes.yaxis.set_minor_locator(NullLocator())
    axes.set_ylabel("sent as factors below, Gb/s")
    step = -(-len(names[0]) // 30)
    ticks = [name.removesuffix("/weight") for name in names[0]]
    axes.set_xticks(list(places)[::step], ticks[::step], rotation=90, fontsize=6)
    for height, text in ((lowest, "never"), (highest, "always")):
        axes.axhline(height, color="#999999", linewidth=0.5, linestyle=":")
        axes.annotate(text, (1, height), xycoords=("axes fraction", "data"), fontsize=6, color="#666666", va="center")
    axes.grid(axis="y", color="#dddddd", linewidth=0.5)
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(frameon=False, fontsize=7)
    axes.set_title(title, fontsize=9, loc="left")


def _shown(instance: SfbInstance, least_bytes: float) -> list[Pays]:
    """From the first layer to the last: gradients are computed the other way round."""
    return [row for row in reversed(pays(instance)) if row.gradient_bytes >= least_bytes]


def _repeated(colours: Sequence[str], count: int) -> list[str]:
    return [colours[place % len(colours)] for place in range(count)]
