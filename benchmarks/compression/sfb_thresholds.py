"""The finding: below which bandwidth and below which batch the gradients of networks are sent as sufficient factors.

Every figure is a breakpoint of a parametric minimum cut, not a sample: at a larger bandwidth or batch the gradient is
all-reduced in every optimal selection, at a smaller one its operator is duplicated in every one. Writes
docs/results/sfb_thresholds.md.
"""

from math import inf

from matplotlib.figure import Figure

from benchmarks.compression.pays import draw, pays, table
from benchmarks.harness import Benchmark, Option
from ddlopt.instances.generators.compression import generate
from ddlopt.instances.workloads.training import GIGABIT_PER_S

HEAD = (
    "# Sufficient factors: when each gradient starts to pay\n\n"
    "What the columns mean: "
    "[compression.md](../families/compression/sfb.md#one-bandwidth-and-one-batch-for-each-gradient).\n\n"
)
MODELS = {"vgg16": (1, 4, 16, 64), "bert-base": (1, 4, 16, 64), "gpt2": (1, 2, 4, 8)}
"""Samples of a worker."""
TABLED = "vgg16", 32


def first_half_all(rows: list[tuple[float, float]]) -> tuple[float, float, float]:
    """The values above which nothing pays, less than half of all bytes does, and not everything does."""
    falling = sorted(rows, reverse=True)
    half, total = 0.0, sum(size for _, size in falling)
    for value, size in falling:
        half += size
        if half >= total / 2:
            return falling[0][0], value, falling[-1][0]
    return 0.0, 0.0, 0.0


def text_of(value: float) -> str:
    return "always" if value == inf else "never" if value == 0 else f"{value:,.3g}"


def thresholds(asked):
    """By network and samples of a worker."""

    def instance_of(model: str, samples: int):
        common = {"workers": asked.workers, "network_gigabit_per_s": asked.gigabits}
        return generate("sfb-network", model=model, batch=samples, **common)

    yield (
        f"{asked.workers} workers, cost model `per_link`; gradients of {asked.least_bytes / 1e6:g} MB and more. "
        f"Batches are told for {asked.gigabits:g} Gb/s, with times in proportion to those of the row: small batches "
        "take longer than that, as weights are read whatever the batch, so that figures near the row's own batch are "
        "those to trust. Where most gradients share a limit, every device computes the whole batch below it, but for "
        "some biases: nothing is left of data parallelism."
    )
    drawn = {model: {samples: instance_of(model, samples) for samples in MODELS[model]} for model in asked.models}
    for model, instances in drawn.items():
        for samples, instance in instances.items():
            found = [each for each in pays(instance) if each.gradient_bytes >= asked.least_bytes]
            bandwidth = [(each.bandwidth_bytes_per_s / GIGABIT_PER_S, each.gradient_bytes) for each in found]
            batch = [(each.batch * samples, each.gradient_bytes) for each in found]
            row = {"network": model, "samples a worker": samples, "gradients": len(found)}
            limits = ("any gradient pays below", "half of the bytes below", "all below")
            row |= {f"{limit}, Gb/s": text_of(value)
                    for limit, value in zip(limits, first_half_all(bandwidth), strict=True)}  # fmt: skip
            yield row | {f"{limit}, samples a worker": text_of(value)
                         for limit, value in zip(limits[:2], first_half_all(batch), strict=False)}  # fmt: skip
    model, samples = TABLED
    yield f"`{model}`, {samples} samples a worker:"
    yield table(instance_of(model, samples), samples * asked.workers, asked.least_bytes).rstrip()
    asked.save(lambda: picture(drawn, asked), "sfb_thresholds.png")


def picture(drawn: dict, asked) -> Figure:
    figure = Figure(figsize=(9, 3.6 * len(drawn)), layout="constrained")
    for place, (model, instances) in enumerate(drawn.items()):
        lines = {f"{samples} per worker": instance for samples, instance in instances.items()}
        axes = figure.add_subplot(len(drawn), 1, place + 1)
        draw(axes, lines, asked.least_bytes, f"{model}, {asked.workers} workers, samples:")
    return figure


BENCH = Benchmark(
    thresholds,
    page="sfb_thresholds",
    head=HEAD,
    models=Option(list(MODELS), choices=MODELS, quick=["vgg16"]),
    workers=Option(8, "of data parallelism"),
    gigabits=Option(25.0, "bandwidth at which batches are told"),
    least_bytes=Option(1e5, "smaller gradients are left out"),
)
