"""The link search and the routing beneath it, as the cluster grows."""

import numpy as np
from scipy.sparse import csr_array
from scipy.sparse.csgraph import dijkstra

from benchmarks.harness import Benchmark, Option, paired, solved, timed
from ddlopt import instances
from ddlopt.models.topology import TopologyInstance
from ddlopt.solvers.contracts import Limits
from ddlopt.solvers.topology.balance.balance import Effort, Job, balance
from ddlopt.solvers.topology.balance.exact import polish
from ddlopt.solvers.topology.link_exchange.moves import hop_volume

LARGEST_PROGRAM = 32
REPEATS = 20
INSTANCES = (
    *("danoint", "all-to-all-n8-d2", "all-to-all-n12-d4", "all-to-all-n16-d4", "hybrid-n16-d4-s1"),
    *("dlrm-n12-d4", "dlrm-n16-d4", "dlrm-n128-d4", "dlrm-stress-n128-d4", "ncf-n128-d4"),
)


def random_job(n: int) -> tuple[Job, np.ndarray]:
    """Dense random traffic on the links of four random rings."""
    rng = np.random.default_rng(n)
    traffic = rng.random((n, n))
    np.fill_diagonal(traffic, 0)
    heads = np.empty((n, 4), dtype=np.int64)
    for k in range(4):
        order = rng.permutation(n)
        heads[order, k] = np.roll(order, -1)
    instance = TopologyInstance(
        name=f"random-{n}", servers=n, degree=4, link_bandwidth_bytes_per_s=1, traffic_bytes=traffic
    )
    return Job(instance), heads


def routing(asked):
    """Routes on fixed links, dense random traffic of degree 4: balancing, quick and accurate, beside HiGHS."""
    polish(balance(*random_job(8)))  # kernels are compiled, imports settle
    for n in asked.sizes:
        job, heads = random_job(n)
        quick, quick_took = timed(balance, job, heads, effort=Effort(8, 100.0, 0, 1))
        found, took = timed(balance, job, heads)
        row = {"n": n}
        for name, answer, spent in (("quick", quick, quick_took), ("accurate", found, took)):
            above = answer.congestion_bytes / found.bound_bytes - 1
            row |= {f"{name} s": spent.processor_s, f"{name}, above bound": f"{above:.2%}"}
        row |= dict.fromkeys(("LP s", "LP / accurate", "accurate / optimum - 1"))
        if n <= LARGEST_PROGRAM:
            exact, exact_took = timed(polish, found)
            row["LP s"] = exact_took.processor_s
            row["LP / accurate"] = f"{exact_took.processor_s / took.processor_s:.0f}"
            row["accurate / optimum - 1"] = f"{found.congestion_bytes / exact.congestion_bytes - 1:.1e}"
        yield row


def hops(asked):
    """Weighted hops of all pairs, what one move of the search costs; SciPy's figure is without building its matrix."""
    for n in asked.sizes:
        job, heads = random_job(n)
        hop_volume(heads, job.traffic, True)
        graph = csr_array((np.ones(4 * n), (np.repeat(np.arange(n), 4), heads.ravel())), shape=(n, n))

        def bit_sets(job=job, heads=heads):
            return np.mean([hop_volume(heads, job.traffic, True) for _ in range(REPEATS)])

        def scipy(job=job, graph=graph):
            return np.mean([(dijkstra(graph, unweighted=True) * job.traffic).sum() for _ in range(REPEATS)])

        runs = paired(3, {"bit sets": bit_sets, "SciPy": scipy})
        if not np.isclose(runs["bit sets"][0][0], runs["SciPy"][0][0]):
            raise SystemExit(f"hops of n={n} differ: {runs}")
        ours, theirs = (min(spent.wall_s for _, spent in runs[name]) / REPEATS for name in runs)
        yield {"n": n, "bit sets ms": 1e3 * ours, "SciPy ms": 1e3 * theirs, "ratio": f"{theirs / ours:.1f}"}


def search(asked):
    """Iteration time in seconds beside TopologyFinder; times include the check of the design."""
    limits = Limits(time_s=asked.time_limit)
    for name in instances.names("topology") if asked.all else asked.instances:
        instance = instances.load(name)
        ours, theirs = (solved(method, instance, limits) for method in ("link-exchange", "topology-finder"))
        row = {"instance": name, "n": instance.servers, "d": instance.degree, "bound": f"{ours.bound:.6g}"}
        for method, result in (("finder", theirs), ("link-exchange", ours)):
            row[method] = result and f"{result.objective:.6g}"
            row[f"{method}, gap"] = result and f"{result.gap:.3%}"
            row[f"{method}, s"] = result and f"{result.runtime_s:.1f}"
        yield row | {"routing gap": f"{ours.details['routing_gap']:.1e}"}


BENCH = Benchmark(
    routing, hops, search,
    sizes=Option([8, 16, 32, 64, 128], "servers of the first two tables", quick=[8]),
    instances=Option(list(INSTANCES), "of the third table", quick=["danoint"]),
    all=Option(False, "all bundled instances in the third table"),
    time_limit=Option(None, "seconds for each search (default: the search's own budget)", quick=1.0, type=float),
)  # fmt: skip
