"""The finding: below which bandwidth and below which batch the gradients of networks are sent as sufficient factors.

    python benchmarks/sfb_thresholds.py --write docs/results

Every figure is a breakpoint of a parametric minimum cut, not a sample: at a larger bandwidth or batch the gradient is
all-reduced in every optimal selection, at a smaller one its operator is duplicated in every one.
"""

import argparse
from math import inf
from pathlib import Path

from matplotlib.figure import Figure

from ddlopt.analysis import plots
from ddlopt.analysis.sfb_thresholds import draw, pays, table
from ddlopt.instances.generators.compression import generate
from ddlopt.instances.workloads.training import GIGABIT_PER_S

HEAD = (
    "# Sufficient factors: when each gradient starts to pay\n\n"
    "What the columns mean: "
    "[compression.md](../families/compression/index.md#one-bandwidth-and-one-batch-for-each-gradient).\n\n"
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


def rows_of(model: str, instances: dict, workers: int, least_bytes: float) -> list[list[str]]:
    rows = []
    for samples, instance in instances.items():
        found = [each for each in pays(instance) if each.gradient_bytes >= least_bytes]
        bandwidth = [(each.bandwidth_bytes_per_s / GIGABIT_PER_S, each.gradient_bytes) for each in found]
        batch = [(each.batch * samples, each.gradient_bytes) for each in found]
        figures = (*first_half_all(bandwidth), *first_half_all(batch)[:2])
        rows.append([model, str(samples), str(len(found)), *map(text_of, figures)])
        print(" ".join(rows[-1]), flush=True)
    return rows


def markdown(head: list[str], rows: list[list[str]]) -> str:
    lines = [head, ["---"] + ["---:"] * (len(head) - 1), *rows]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--models", nargs="+", default=list(MODELS), choices=list(MODELS))
    parser.add_argument("--workers", type=int, default=8)
    parser.add_argument("--gigabits", type=float, default=25.0, help="bandwidth at which batches are told")
    parser.add_argument("--least-bytes", type=float, default=1e5, help="smaller gradients are left out")
    parser.add_argument("--write", type=Path, help="folder for sfb_thresholds.md and sfb_thresholds.png")
    options = parser.parse_args()

    def instance_of(model: str, samples: int):
        common = {"workers": options.workers, "network_gigabit_per_s": options.gigabits}
        return generate("sfb-network", model=model, batch=samples, **common)

    figure = Figure(figsize=(9, 3.6 * len(options.models)), layout="constrained")
    rows = []
    for place, model in enumerate(options.models):
        instances = {samples: instance_of(model, samples) for samples in MODELS[model]}
        rows += rows_of(model, instances, options.workers, options.least_bytes)
        lines = {f"{samples} per worker": instance for samples, instance in instances.items()}
        axes = figure.add_subplot(len(options.models), 1, place + 1)
        draw(axes, lines, options.least_bytes, f"{model}, {options.workers} workers, samples:")
    limits = ("any gradient pays below", "half of the bytes below", "all below")
    head = ["network", "samples a worker", "gradients", *(f"{each}, Gb/s" for each in limits)]
    head += [f"{each}, samples a worker" for each in limits[:2]]
    model, samples = TABLED
    text = (
        f"{options.workers} workers, cost model `per_link`; gradients of {options.least_bytes / 1e6:g} MB and more. "
        f"Batches are told for {options.gigabits:g} Gb/s, with times in proportion to those of the row: small batches "
        "take longer than that, as weights are read whatever the batch, so that figures near the row's own batch are "
        "those to trust. Where most gradients share a limit, every device computes the whole batch below it, but for "
        "some biases: nothing is left of data parallelism.\n\n"
        f"{markdown(head, rows)}\n"
        f"`{model}`, {samples} samples a worker:\n\n"
        f"{table(instance_of(model, samples), samples * options.workers, options.least_bytes)}"
    )
    print(text)
    if options.write:
        (options.write / "sfb_thresholds.md").write_text(HEAD + text)
        plots.save(figure, options.write / "sfb_thresholds.png")


if __name__ == "__main__":
    main()
