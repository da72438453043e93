"""What aggregation in switches saves: iteration times of servers, rings, the first switch and the optimum.

Compute seconds are a V100's by roofline, compute and communication follow each other. Gradients reach the server, and
the sum comes back the other way at the same time.
"""

from collections.abc import Callable
from functools import partial
from statistics import mean
from typing import NamedTuple

from benchmarks.aggregation.iteration_times import congestion_s, ring_s, servers_s, slots_of, touched
from benchmarks.harness import Benchmark, Option
from ddlopt.instances.generators.aggregation import generate
from ddlopt.instances.workloads.accelerators import V100
from ddlopt.instances.workloads.networks.published import bert, dlrm, gpt2, resnet50, vgg16
from ddlopt.instances.workloads.sparse_batches import CRITEO_SAMPLE
from ddlopt.instances.workloads.training import GIGABIT_PER_S, PASSES, Workload
from ddlopt.models.aggregation import GraphInstance
from ddlopt.solvers.aggregation.graph.ring import Ring
from ddlopt.solvers.aggregation.graph.search import GraphSearch
from ddlopt.solvers.aggregation.graph.strategies import ShortestRoutes
from ddlopt.solvers.aggregation.slots.methods import best
from ddlopt.solvers.contracts import Limits, Result

DENSE: dict[str, Callable[[], Workload]] = {
    "resnet50, 32": lambda: resnet50(32),
    "vgg16, 32": lambda: vgg16(32),
    "bert-base 128, 8": lambda: bert(12, 768, 128, 8),
    "gpt2, 2": lambda: gpt2(2),
}
"""With samples of a worker and iteration."""
DIMENSION = 64
SPEEDS = (10, 25, 100)
HOTS = {"0": 0, "256": 256, "1024": 1024, "4096": 4096, "all": CRITEO_SAMPLE.parameters}
"""Hot rows that the switch aggregates."""
PARTS = (8192, 2048, 512, 128, 32)
"""Slots of a switch."""


class Fabric(NamedTuple):
    k: int
    jobs: int
    workers: int
    placement: str


FABRICS = (
    Fabric(4, 3, 4, "random"), Fabric(4, 3, 4, "clustered"), Fabric(8, 8, 14, "random"),
    Fabric(8, 8, 14, "clustered"), Fabric(8, 4, 30, "random"),
)  # fmt: skip


def compute_s(workload: Workload) -> float:
    """Both passes of a worker with one GPU, which looks its own samples' rows up."""
    batch = workload.batch_per_gpu
    layers = sum(V100.forward_s(layer, batch) for layer in workload.layers)
    return PASSES * (layers + sum(V100.lookup_s(table, batch) for table in workload.tables))


def recommender(batch: int) -> Workload:
    """A small DLRM on click-log rows: 17 tables, one row of each for a sample."""
    return dlrm(17, 1000, DIMENSION, 1, [13, 512, 256, 64], [512, 256, 1], batch)


def rack(asked):
    """Dense gradients, eight workers on one switch: speed-up of an iteration over one server."""
    for name, make in DENSE.items():
        workload = make()
        size, seconds = float(workload.gradient_bytes), compute_s(workload)
        row = {"network, batch": name, "MB": f"{size / 1e6:.0f}", "compute ms": f"{1e3 * seconds:.1f}"}
        for speed in SPEEDS:
            rate = speed * GIGABIT_PER_S
            one, two = (seconds + servers_s(8, servers, size, rate) for servers in (1, 2))
            others = {"2 servers": two, "ring": seconds + ring_s(8, size, rate), "switch": seconds + size / rate}
            row |= {f"{what} {speed} Gb/s": f"{one / other:.2f}" for what, other in others.items()}
        yield row


def sparse(asked):
    """Rows of embedding tables of a click log: gradient aggregation over one server, by hot rows on the switch."""
    for workers in (4, 8, 16, 32):
        for batch in (16, 128, 1024):
            row = {"workers": workers, "rows of a batch": batch}
            row["touched"] = f"{touched(batch, DIMENSION, 0).frequencies.sum():.0f}"
            yield row | {name: f"{sparse_gain(workers, batch, hot, 0.0):.2f}" for name, hot in HOTS.items()}
    yield "A small DLRM with its dense layers, 4096 hot rows: gradient aggregation, iteration (switch over one server)."
    for workers in (4, 8, 16):
        for batch in (128, 1024):
            workload = recommender(batch)
            dense, seconds = float(workload.gradient_bytes), compute_s(workload)
            rows = touched(batch, DIMENSION, 4096)
            gain = sparse_gain(workers, batch, 4096, dense)
            row = {"workers": workers, "batch": batch, "compute ms": 1e3 * seconds}
            row |= {"sparse kB": f"{rows.worker_bytes / 1e3:.0f}", "dense kB": f"{dense / 1e3:.0f}"}
            row["gradients"] = f"{gain:.2f}"
            for speed in SPEEDS:
                sent = workers * (rows.worker_bytes + dense) / (speed * GIGABIT_PER_S)
                row[f"{speed} Gb/s"] = f"{(seconds + sent) / (seconds + sent / gain):.2f}"
            yield row


def sparse_gain(workers: int, batch: int, hot: int, dense_bytes: float) -> float:
    """Bytes that the server's link carries without aggregation, over those with it."""
    rows = touched(batch, DIMENSION, hot)
    arrives = rows.merged_bytes(workers) + workers * rows.cold_bytes
    return workers * (rows.worker_bytes + dense_bytes) / (arrives + dense_bytes)


def instance_of(fabric: Fabric, seed: int, gradient_bytes: float, oversubscription: float = 1.0) -> GraphInstance:
    """Equal jobs in a fat-tree whose switches have slots for all."""
    return generate(
        "fat-tree", seed, k=fabric.k, jobs=fabric.jobs, workers=fabric.workers, placement=fabric.placement,
        gradient_bytes=gradient_bytes, slots=fabric.jobs, goal="congestion", oversubscription=oversubscription,
    )  # fmt: skip


def optimum(instance: GraphInstance, time_s: float) -> Result:
    """By search, with its bound."""
    return GraphSearch().solve(instance, Limits(time_s=time_s, gap=1e-3))


def trees(asked):
    """Fat-trees: communication of all jobs at once, in times that a gradient takes on a host's link of 100 Gb/s."""
    size = 1e8
    unit = size / (100 * GIGABIT_PER_S)
    for fabric in FABRICS[: asked.fabrics]:
        for oversubscription in (1.0, 4.0):
            instances = [instance_of(fabric, seed, size, oversubscription) for seed in range(1, asked.seeds + 1)]
            found = [communication(instance, asked.time_limit) for instance in instances]
            means = {name: mean(each[name] for each in found) for name in found[0]}
            row = {"k": fabric.k, "over": f"{oversubscription:.0f}", **fabric._asdict()}
            row |= {name: f"{value / unit:.2f}" for name, value in means.items() if name not in ("sparse", "dlrm")}
            row |= {"sparse": f"{means['sparse']:.2f}", "gain": f"{means['server'] / means['optimum']:.2f}"}
            yield row | {"dlrm": f"{means['dlrm']:.2f}"}


def communication(instance: GraphInstance, time_s: float) -> dict[str, float]:
    """Seconds by method; gain of the optimum for sparse rows alone, and with the layers of a recommender."""
    rules = {"server": "none", "first": "first-switch", "max": "max"}
    results = {name: ShortestRoutes(rule).solve(instance, Limits()) for name, rule in rules.items()}
    results |= {"ring": Ring().solve(instance, Limits()), "optimum": optimum(instance, time_s)}
    plain, found = results["server"].solution, results["optimum"].solution
    seconds = {name: results[name].objective or 0.0 for name in ("server", "ring", "first", "max", "optimum")}
    seconds["bound"] = results["optimum"].bound or 0.0
    rows, nothing = (touched(128, DIMENSION, hot) for hot in (4096, 0))
    for name, dense in {"sparse": 0.0, "dlrm": float(recommender(128).gradient_bytes)}.items():
        without = congestion_s(instance, plain, plain, nothing, dense)
        seconds[name] = without / congestion_s(instance, found, plain, rows, dense)
    return seconds


def memory(asked):
    """Jobs share slots, fat-tree k=8, 8 jobs of 14 workers, 100 Gb/s: iteration with one server over that, by slots."""
    fabric = Fabric(8, 8, 14, "random")
    lines = {}
    for name in list(DENSE)[: asked.networks]:
        workload = DENSE[name]()
        seconds = compute_s(workload)
        instance = instance_of(fabric, 1, float(workload.gradient_bytes))
        plan = optimum(instance, asked.time_limit).solution
        plain = ShortestRoutes("none").solve(instance, Limits()).objective or 0.0
        for rtt_us in (10, 50):
            packets = {"payload_bytes": 256.0, "rtt_s": 1e-6 * rtt_us}
            shared = [slots_of(instance, plan, [seconds] * fabric.jobs, slots=slots, **packets) for slots in PARTS]
            longest = [best(each, "highs").solve(each, Limits()).objective or 1.0 for each in shared]
            lines[name, rtt_us] = [(seconds + plain) / each for each in longest]
            gains = {str(slots): f"{gain:.2f}" for slots, gain in zip(PARTS, lines[name, rtt_us], strict=True)}
            yield {"network, batch": name, "RTT µs": rtt_us, **gains}
    asked.save(partial(picture, lines), "aggregation_gain.png")


def picture(lines: dict[tuple[str, int], list[float]]):
    """Gains over slots."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(6.4, 3.6), layout="constrained")
    axes = figure.add_subplot()
    colours = dict(zip(dict.fromkeys(name for name, _ in lines), ("#1f6fb4", "#d95f02", "#3a9d5d"), strict=False))
    for (name, rtt_us), gains in lines.items():
        style = "o-" if rtt_us == 10 else "s--"
        axes.loglog(PARTS, gains, style, color=colours[name], label=f"{name}; RTT {rtt_us} µs", markersize=4)
    axes.axhline(1, color="black", linewidth=0.8)
    axes.set_xlabel("slots of a switch, for 8 jobs")
    axes.set_ylabel("iteration with one server /\niteration with aggregation")
    axes.legend(frameon=False, fontsize=7)
    return figure


BENCH = Benchmark(
    rack, sparse, trees, memory,
    pages=False,
    time_limit=Option(10.0, "seconds for each search", quick=0.5),
    seeds=Option(3, quick=1),
    fabrics=Option(len(FABRICS), "how many of the fat-trees, smallest first", quick=1),
    networks=Option(3, "how many networks share slots", quick=1),
)  # fmt: skip
