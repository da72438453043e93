"""The link search and the routing beneath it, as the cluster grows.

Three tables: routes on fixed links beside the linear program by HiGHS (dense random traffic, random links of degree 4);
hops of all pairs beside breadth-first search by SciPy, which is what one move of the search costs; the search itself
beside TopologyFinder, on bundled instances or, with ``--all``, on all of them.
"""

import argparse
import time

import numpy as np
from rich.console import Console
from rich.table import Table
from scipy.sparse import csr_array
from scipy.sparse.csgraph import dijkstra

import ddlopt
from ddlopt import instances
from ddlopt.models.errors import DdloptError
from ddlopt.models.topology import TopologyInstance
from ddlopt.solvers.contracts import Limits
from ddlopt.solvers.topology.balance import Effort, Job, balance
from ddlopt.solvers.topology.balance_lp import polish
from ddlopt.solvers.topology.exchange_moves import hop_volume
from ddlopt.solvers.topology.link_exchange import LinkExchange
from ddlopt.solvers.topology.topology_finder import TopologyFinder

SIZES = (8, 16, 32, 64, 128)
LARGEST_PROGRAM = 32
REPEATS = 20
INSTANCES = (
    *("danoint", "all-to-all-n8-d2", "all-to-all-n12-d4", "all-to-all-n16-d4", "hybrid-n16-d4-s1"),
    *("dlrm-n12-d4", "dlrm-n16-d4", "dlrm-n128-d4", "dlrm-stress-n128-d4", "ncf-n128-d4"),
)


def timed(work):
    started = time.perf_counter()
    result = work()
    return result, time.perf_counter() - started


def table_of(title, columns):
    table = Table(title=title)
    for column in columns:
        table.add_column(column, justify="left" if column == "instance" else "right")
    return table


def random_job(n, rng):
    """Dense random traffic on the links of four random rings."""
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


def routing(console):
    """Quick and accurate balancing; ratios of time are to the linear program."""
    columns = (
        "n",
        "quick s",
        "above bound",
        "accurate s",
        "above bound",
        "LP s",
        "LP / accurate",
        "accurate / optimum - 1",
    )
    table = table_of("routes on fixed links", columns)
    balance(*random_job(8, np.random.default_rng(1)))
    for n in SIZES:
        job, heads = random_job(n, np.random.default_rng(n))
        quick, quick_s = timed(lambda job=job, heads=heads: balance(job, heads, effort=Effort(8, 100.0, 0, 1)))
        found, found_s = timed(lambda job=job, heads=heads: balance(job, heads))
        row = [str(n)]
        for answer, seconds in ((quick, quick_s), (found, found_s)):
            row += [f"{seconds:.4f}", f"{answer.congestion_bytes / found.bound_bytes - 1:.2%}"]
        if n <= LARGEST_PROGRAM:
            exact, exact_s = timed(lambda found=found: polish(found))
            above = found.congestion_bytes / exact.congestion_bytes - 1
            row += [f"{exact_s:.3f}", f"{exact_s / found_s:.0f}", f"{above:.1e}"]
        table.add_row(*row)
    console.print(table)


def hops(console):
    """One evaluation of the surrogate; SciPy's figure does not include building its matrix."""
    table = table_of("hops of all pairs, weighted", ("n", "bit sets ms", "SciPy ms", "ratio"))
    for n in SIZES:
        job, heads = random_job(n, np.random.default_rng(n))
        hop_volume(heads, job.traffic, True)
        graph = csr_array((np.ones(4 * n), (np.repeat(np.arange(n), 4), heads.ravel())), shape=(n, n))
        graph.data[:] = 1

        def bit_sets(job=job, heads=heads):
            return np.mean([hop_volume(heads, job.traffic, True) for _ in range(REPEATS)])

        def scipy(job=job, graph=graph):
            return np.mean([(dijkstra(graph, unweighted=True) * job.traffic).sum() for _ in range(REPEATS)])

        (ours, ours_s), (theirs, theirs_s) = timed(bit_sets), timed(scipy)
        if not np.isclose(ours, theirs):
            raise SystemExit(f"hops of n={n}: {ours} against {theirs}")
        each = f"{1e3 * ours_s / REPEATS:.3f}", f"{1e3 * theirs_s / REPEATS:.3f}"
        table.add_row(str(n), *each, f"{theirs_s / ours_s:.1f}")
    console.print(table)


def search(console, names, limits):
    """The search beside TopologyFinder; times include the check of the design."""
    columns = ("instance", "n", "d", "bound", "finder", "gap", "s", "link-exchange", "gap", "s", "routing gap")
    table = table_of("iteration time in seconds", columns)
    for name in names:
        instance = ddlopt.load(name)
        row = [name, str(instance.servers), str(instance.degree)]
        ours = LinkExchange().solve(instance, limits)
        row.append(f"{ours.bound:.6g}")
        try:
            theirs = TopologyFinder().solve(instance, limits)
            row += [f"{theirs.objective:.6g}", f"{theirs.gap:.2%}", f"{theirs.runtime_s:.1f}"]
        except DdloptError:
            row += ["–", "–", "–"]
        row += [
            f"{ours.objective:.6g}",
            f"{ours.gap:.3%}",
            f"{ours.runtime_s:.1f}",
            f"{ours.details['routing_gap']:.1e}",
        ]
        table.add_row(*row)
    console.print(table)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--all", action="store_true", help="all bundled instances")
    parser.add_argument("--time-limit", type=float, help="seconds per search (default: the search's own budget)")
    arguments = parser.parse_args()
    console = Console(width=150)
    routing(console)
    hops(console)
    search(console, instances.names() if arguments.all else INSTANCES, Limits(time_s=arguments.time_limit))


if __name__ == "__main__":
    main()
