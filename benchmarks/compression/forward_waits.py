"""When does the order of sending matter more than compression? The next forward pass waits for each layer's gradient.

For a network at every bandwidth five ways to send its gradients: as they are ready, uncompressed ("wfbp"); the same
gradients in the best order and parts ("order"); the best options in the order of readiness ("compressors"); these
options, then order and parts ("then order"); and all of it at once ("together", with the gap to its bound). Figures are
how much longer a step takes than the computation by itself, relative to it. "order wins" where the order alone saves
more than the options alone. A tenth of the energy of all gradients may be lost.
"""

from matplotlib.figure import Figure

from benchmarks.harness import Benchmark, Option, solved
from ddlopt.instances import generate
from ddlopt.models.compression import ForwardInstance
from ddlopt.solvers.compression.forward.schedulers import ByteScheduler, Wfbp
from ddlopt.solvers.contracts import Limits

WAYS = {
    "wfbp": ("as ready", "#5f6b76", "o"),
    "order": ("order and parts", "#1f6fb4", "s"),
    "compressors": ("compressors", "#d95f02", "D"),
    "then order": ("compressors, then order", "#b8860b", "^"),
    "together": ("all together", "#3a9d5d", "v"),
}
"""Label, colour and marker."""


def waits(asked):
    """A row for each network and bandwidth."""
    limits = Limits(time_s=asked.time_limit)
    drawn = {}
    for model in asked.models:
        for gigabit in asked.gigabits:
            instance = generate(
                "compression", "forward-network", model=model, nodes=asked.nodes, network_gigabit_per_s=gigabit
            )
            assert isinstance(instance, ForwardInstance)
            together = solved("forward-search", instance, limits)
            steps = {
                "wfbp": Wfbp().solve(instance, limits).objective,
                "order": ByteScheduler().solve(instance, limits).objective,
                "compressors": Wfbp(compressed=True).solve(instance, limits).objective,
                "then order": ByteScheduler(compressed=True).solve(instance, limits).objective,
                "together": together.objective,
            }
            compute_s = instance.timeline.gradients[-1].ready_s + sum(instance.forward_s)
            over = {way: step / compute_s - 1 for way, step in steps.items()}
            drawn.setdefault(model, []).append((gigabit, over))
            yield {
                "network": model, "Gbit/s": f"{gigabit:g}", "computation": f"{1e3 * compute_s:.1f} ms",
                **{way: f"{each:.1%}" for way, each in over.items()}, "gap": f"{together.gap:.2%}",
                "order wins": "yes" if over["order"] < over["compressors"] else "no",
            }  # fmt: skip
    asked.save(lambda: picture(drawn), "forward_waits.png")


def picture(drawn: dict) -> Figure:
    figure = Figure(figsize=(3.7 * len(drawn), 3.4), layout="constrained")
    for place, (model, points) in enumerate(drawn.items()):
        axes = figure.add_subplot(1, len(drawn), place + 1)
        for way, (label, colour, marker) in WAYS.items():
            heights = [100 * over[way] for _, over in points]
            axes.plot([g for g, _ in points], heights, color=colour, marker=marker, markersize=3, label=label)
        axes.set_xscale("log")
        axes.set_yscale("symlog", linthresh=1.0)
        axes.set_ylim(bottom=0)
        axes.set_xlabel("network [Gbit/s]", fontsize=8)
        axes.set_title(model, fontsize=9)
        axes.tick_params(labelsize=7)
        if not place:
            axes.set_ylabel("step longer than its computation [%]", fontsize=8)
            axes.legend(fontsize=7, frameon=False)
    return figure


BENCH = Benchmark(
    waits,
    models=Option(["vgg16", "resnet50", "bert-base"], "networks", quick=["vgg16"], type=str),
    gigabits=Option([1.0, 5.0, 10.0, 25.0, 50.0, 100.0, 200.0, 400.0], "bandwidths of a node", quick=[25.0]),
    nodes=Option(8, "of eight GPUs each", quick=2),
    time_limit=Option(10.0, quick=1.0),
)  # fmt: skip
