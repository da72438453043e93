"""What aggregation in switches saves: iteration times of servers, rings, the first switch and the optimum.

    python benchmarks/aggregation_gain.py [rack] [sparse] [trees] [memory] [--picture FILE]

*rack*: dense gradients on one switch; *sparse*: rows of embedding tables of a click log on one switch, the hot ones
aggregated; *trees*: dense and sparse gradients of several jobs in fat-trees, where the optimum is that of congestion;
*memory*: the same plans where all jobs share slots. Compute seconds are a V100's by roofline, compute and
communication follow each other. Gradients reach the server, and the sum comes back the other way at the same time.
"""

import argparse
from collections.abc import Callable
from statistics import mean
from typing import NamedTuple

from ddlopt.analysis.aggregation_gain import (
    congestion_s,
    ring_s,
    servers_s,
    slots_of,
    touched,
)
from ddlopt.instances.generators.aggregation import generate
from ddlopt.instances.workloads.networks import bert, dlrm, gpt2, resnet50, vgg16
from ddlopt.instances.workloads.sparse_batches import CRITEO_SAMPLE
from ddlopt.instances.workloads.training import GIGABIT_PER_S, PASSES, V100, Accelerator, Workload
from ddlopt.models.aggregation import AggregationTrees, GraphInstance
from ddlopt.solvers.aggregation.graph_ring import Ring
from ddlopt.solvers.aggregation.graph_search import GraphSearch
from ddlopt.solvers.aggregation.graph_strategies import ShortestRoutes
from ddlopt.solvers.aggregation.slots_methods import best
from ddlopt.solvers.contracts import Limits, Result

TABLES = ("rack", "sparse", "trees", "memory")
_DENSE: dict[str, Callable[[], Workload]] = {
    "resnet50, 32": lambda: resnet50(32),
    "vgg16, 32": lambda: vgg16(32),
    "bert-base 128, 8": lambda: bert(12, 768, 128, 8),
    "gpt2, 2": lambda: gpt2(2),
}
"""With samples of a worker and iteration."""
_DIMENSION = 64
_SPEEDS = (10, 25, 100)
_SEEDS = (1, 2, 3)


def compute_s(workload: Workload, accelerator: Accelerator = V100) -> float:
    """Both passes of a worker with one GPU, which looks its own samples' rows up."""
    batch = workload.batch_per_gpu
    layers = sum(accelerator.forward_s(layer, batch) for layer in workload.layers)
    return PASSES * (layers + sum(accelerator.lookup_s(table, batch) for table in workload.tables))


def recommender(batch: int) -> Workload:
    """A small DLRM on click-log rows: 17 tables, one row of each for a sample."""
    return dlrm(17, 1000, _DIMENSION, 1, [13, 512, 256, 64], [512, 256, 1], batch)


def rack_table() -> None:
    """Dense gradients: iteration with one server, and by how much others are faster."""
    print("speed-up of an iteration over one server / over a ring, eight workers on one switch")
    print(f"{'network, batch':18}{'MB':>6}{'compute ms':>12}" + "".join(f"{f'{speed} Gb/s':>24}" for speed in _SPEEDS))
    head = f"{'2 srv':>7}{'ring':>6}{'switch':>7}"
    print(" " * 36 + f"{head:>24}" * len(_SPEEDS))
    for name, make in _DENSE.items():
        workload = make()
        size, seconds = float(workload.gradient_bytes), compute_s(workload)
        cells = ""
        for speed in _SPEEDS:
            rate = speed * GIGABIT_PER_S
            one, two = (seconds + servers_s(8, servers, size, rate) for servers in (1, 2))
            ring, switch = seconds + ring_s(8, size, rate), seconds + size / rate
            cells += f"{f'{one / two:7.2f}{one / ring:6.2f}{one / switch:7.2f}':>24}"
        print(f"{name:18}{size / 1e6:6.0f}{1e3 * seconds:12.1f}{cells}")


_HOTS = (0, 256, 1024, 4096, 1 << 30)


def sparse_table() -> None:
    """Rows of embedding tables: how much less the server receives, and what that is in iterations."""
    print("gradient aggregation: speed-up over one server, rows alone, by hot rows on the switch")
    print(f"{'workers':>8}{'rows of a batch':>17}{'touched':>9}" + "".join(f"{_hot(hot):>9}" for hot in _HOTS))
    for workers in (4, 8, 16, 32):
        for batch in (16, 128, 1024):
            cells = ""
            for hot in _HOTS:
                rows = touched(batch, _DIMENSION, hot)
                cells += f"{sparse_gain(workers, batch, hot, 0.0):9.2f}"
            print(f"{workers:8}{batch:17}{rows.frequencies.sum():9.0f}{cells}")
    print("\nsmall DLRM with its dense layers, 4096 hot rows: gradient aggregation, iteration (switch over one server)")
    print(f"{'workers':>8}{'batch':>7}{'compute ms':>12}{'sparse kB':>11}{'dense kB':>10}{'gradients':>11}"
          + "".join(f"{f'{speed} Gb/s':>10}" for speed in _SPEEDS))  # fmt: skip
    for workers in (4, 8, 16):
        for batch in (128, 1024):
            workload = recommender(batch)
            dense, seconds = float(workload.gradient_bytes), compute_s(workload)
            rows = touched(batch, _DIMENSION, 4096)
            plain = workers * (rows.worker_bytes + dense)
            gain = sparse_gain(workers, batch, 4096, dense)
            cells = ""
            for speed in _SPEEDS:
                sent = plain / (speed * GIGABIT_PER_S)
                cells += f"{(seconds + sent) / (seconds + sent / gain):10.2f}"
            sizes = f"{rows.worker_bytes / 1e3:11.0f}{dense / 1e3:10.0f}"
            print(f"{workers:8}{batch:7}{1e3 * seconds:12.2f}{sizes}{gain:11.2f}{cells}")


def _hot(hot: int) -> str:
    return "all" if hot >= 1 << 30 else str(hot)


def sparse_gain(workers: int, batch: int, hot: int, dense_bytes: float) -> float:
    """Bytes that the server's link carries without aggregation, over those with it."""
    rows = touched(batch, _DIMENSION, min(hot, CRITEO_SAMPLE.parameters))
    arrives = rows.merged_bytes(workers) + workers * rows.cold_bytes
    return workers * (rows.worker_bytes + dense_bytes) / (arrives + dense_bytes)


class _Fabric(NamedTuple):
    k: int
    jobs: int
    workers: int
    placement: str


_FABRICS = (
    _Fabric(4, 3, 4, "random"), _Fabric(4, 3, 4, "clustered"), _Fabric(8, 8, 14, "random"),
    _Fabric(8, 8, 14, "clustered"), _Fabric(8, 4, 30, "random"),
)  # fmt: skip


def instance_of(fabric: _Fabric, seed: int, gradient_bytes: float, oversubscription: float = 1.0) -> GraphInstance:
    """Equal jobs in a fat-tree whose switches have slots for all."""
    made = generate(
        "fat-tree", seed, k=fabric.k, jobs=fabric.jobs, workers=fabric.workers, placement=fabric.placement,
        gradient_bytes=gradient_bytes, slots=fabric.jobs, goal="congestion", oversubscription=oversubscription,
    )  # fmt: skip
    assert isinstance(made, GraphInstance)
    return made


def plan_of(result: Result) -> AggregationTrees:
    """That was found."""
    assert isinstance(result.solution, AggregationTrees)
    return result.solution


def optimum(instance: GraphInstance, time_s: float) -> Result:
    """By search, with its bound."""
    return GraphSearch().solve(instance, Limits(time_s=time_s, gap=1e-3))


def tree_table(time_s: float) -> None:
    """Fat-trees: communication in units of one gradient on a host's link."""
    size = 1e8
    print("communication of all jobs at once, in times that a gradient takes on a host's link (100 Gb/s)")
    columns = ("server", "ring", "first", "max", "optimum", "bound", "sparse")
    print(f"{'k':>3}{'over':>6}{'jobs':>6}{'workers':>9} {'placement':10}" + "".join(f"{name:>9}" for name in columns)
          + f"{'gain':>7}{'dlrm':>7}")  # fmt: skip
    unit = size / (100 * GIGABIT_PER_S)
    for fabric in _FABRICS:
        for oversubscription in (1.0, 4.0):
            figures = [_figures(instance_of(fabric, seed, size, oversubscription), time_s) for seed in _SEEDS]
            means = [mean(each) / unit for each in zip(*(figure[:6] for figure in figures), strict=True)]
            sparse = mean(figure[6] for figure in figures)
            cells = "".join(f"{value:9.2f}" for value in means) + f"{sparse:9.2f}"
            print(
                f"{fabric.k:3}{oversubscription:6.0f}{fabric.jobs:6}{fabric.workers:9} {fabric.placement:10}{cells}"
                f"{means[0] / means[4]:7.2f}{mean(figure[7] for figure in figures):7.2f}",
                flush=True,
            )


def _figures(instance: GraphInstance, time_s: float) -> tuple[float, ...]:
    """Server, ring, first switch, rule max, optimum, bound in seconds; sparse gain of rows alone, and with layers."""
    rules = ("none", "first-switch", "max")
    plain, first, everywhere = (ShortestRoutes(rule).solve(instance, Limits()) for rule in rules)
    ring = Ring().solve(instance, Limits())
    found = optimum(instance, time_s)
    rows = touched(128, _DIMENSION, 4096)
    nothing = touched(128, _DIMENSION, 0)
    gains = []
    for dense in (0.0, float(recommender(128).gradient_bytes)):
        without = congestion_s(instance, plan_of(plain), plan_of(plain), nothing, dense)
        gains.append(without / congestion_s(instance, plan_of(found), plan_of(plain), rows, dense))
    times = (plain.objective, ring.objective, first.objective, everywhere.objective, found.objective, found.bound)
    return (*(value or 0.0 for value in times), *gains)


def memory_table(time_s: float, picture: str | None = None) -> None:
    """The same optimum where jobs share the slots of switches: longest iteration, and how many slots matter."""
    fabric = _Fabric(8, 8, 14, "random")
    print("fat-tree k=8, 8 jobs of 14 workers, 100 Gb/s, packets of 256 bytes; iteration over that with one server")
    parts = (8192, 2048, 512, 128, 32)
    print(f"{'network, batch':18}{'RTT us':>7}" + "".join(f"{count:>9}" for count in parts))
    lines = {}
    for name in ("resnet50, 32", "vgg16, 32", "bert-base 128, 8"):
        workload = _DENSE[name]()
        seconds = compute_s(workload)
        instance = instance_of(fabric, 1, float(workload.gradient_bytes))
        plan = plan_of(optimum(instance, time_s))
        plain = ShortestRoutes("none").solve(instance, Limits()).objective or 0.0
        for rtt_us in (10, 50):
            gains = []
            for slots in parts:
                shared = slots_of(
                    instance, plan, [seconds] * fabric.jobs, slots=slots, payload_bytes=256.0, rtt_s=1e-6 * rtt_us
                )
                gains.append((seconds + plain) / (best(shared, "highs").solve(shared, Limits()).objective or 1.0))
            lines[name, rtt_us] = gains
            print(f"{name:18}{rtt_us:7}" + "".join(f"{gain:9.2f}" for gain in gains), flush=True)
    if picture:
        _draw(parts, lines, picture)


def _draw(slots: tuple[int, ...], lines: dict[tuple[str, int], list[float]], picture: str) -> None:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(6.4, 3.6), layout="constrained")
    axes = figure.add_subplot()
    colours = dict(zip(dict.fromkeys(name for name, _ in lines), ("#1f6fb4", "#d95f02", "#3a9d5d"), strict=False))
    for (name, rtt_us), gains in lines.items():
        style = "o-" if rtt_us == 10 else "s--"
        axes.loglog(slots, gains, style, color=colours[name], label=f"{name}; RTT {rtt_us} µs", markersize=4)
    axes.axhline(1, color="black", linewidth=0.8)
    axes.set_xlabel("slots of a switch, for 8 jobs")
    axes.set_ylabel("iteration with one server /\niteration with aggregation")
    axes.legend(frameon=False, fontsize=7)
    figure.savefig(picture, dpi=150)


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("tables", nargs="*", metavar="TABLE", help=f"of {', '.join(TABLES)} (default: all)")
    parser.add_argument("--time-limit", type=float, default=10.0, metavar="S", help="of each search (default: 10)")
    parser.add_argument("--picture", metavar="FILE", help="gains over slots")
    options = parser.parse_args()
    run: dict[str, Callable[[], None]] = {
        "rack": rack_table,
        "sparse": sparse_table,
        "trees": lambda: tree_table(options.time_limit),
        "memory": lambda: memory_table(options.time_limit, options.picture),
    }
    for table in options.tables or TABLES:
        print(f"\n{table}")
        run[table]()


if __name__ == "__main__":
    main()
