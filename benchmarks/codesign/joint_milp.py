"""The joint program of strategies and topology: relaxations of both forms, and how solve times grow with the servers.

``cycle`` is the iteration time on one cycle of links, which bounds the search from above. ``LP`` are relaxations of
:class:`JointStrategyTopology`, without and with (+) the rows of ``StrategyBound``. Then, with these rows, the best
plan, its bound within generator rings, its gap, processor seconds from the instance on, and the nodes of the search.
Memory of the GPUs is not limited, so that few servers are enough. Milliseconds of an iteration throughout.

    python benchmarks/codesign_joint.py [--jobs dlrm vgg16 bert candle] [--servers 4 5 6 8] [--degree 2] [--limit 100]
                                        [--forms congestion throughput] [--strengthening none]
"""

import argparse
import time

from rich.console import Console
from rich.table import Table

from ddlopt.instances.generators import generate
from ddlopt.models.codesign.coupling import cycle_time_s
from ddlopt.models.codesign.joint_milp import JointStrategyTopology
from ddlopt.models.errors import SolverError
from ddlopt.solvers.contracts import Limits
from ddlopt.solvers.exact import Exact, lp_relaxation


def milliseconds(seconds):
    return "-" if seconds is None else f"{1e3 * seconds:.4g}"


def relaxations(instance, form, strengthening):
    """LP bounds without and with the rows of ``StrategyBound``."""
    for bounds in (False, True):
        try:
            yield lp_relaxation(
                JointStrategyTopology(form=form, strengthening=strengthening, bounds=bounds), instance
            ).objective
        except SolverError:
            yield None


def row(job, servers, form, options):
    instance = generate("codesign", kind="job", job=job, servers=servers, degree=options.degree, memory_gigabytes=None)
    plain, bounded = relaxations(instance, form, options.strengthening)
    formulation = JointStrategyTopology(form=form, strengthening=options.strengthening)
    started = time.process_time()
    result = Exact("joint-milp", "codesign", formulation).solve(instance, Limits(time_s=options.limit, gap=1e-4))
    spent = time.process_time() - started
    return [
        job,
        str(servers),
        form,
        milliseconds(cycle_time_s(instance)),
        milliseconds(plain),
        milliseconds(bounded),
        milliseconds(result.objective),
        milliseconds(result.scope_bound if result.scope else result.bound),
        "-" if result.scope_gap is None else f"{result.scope_gap:.2%}",
        f"{spent:.1f}",
        f"{result.details.get('nodes', 0):.0f}",
    ]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--jobs", nargs="+", default=["dlrm", "vgg16", "bert", "candle"])
    parser.add_argument("--servers", nargs="+", type=int, default=[4, 5, 6, 8])
    parser.add_argument("--degree", type=int, default=2)
    parser.add_argument("--limit", type=float, default=100.0)
    parser.add_argument("--forms", nargs="+", default=["congestion", "throughput"])
    parser.add_argument("--strengthening", default="none")
    options = parser.parse_args()
    table = Table(title=f"degree {options.degree}, strengthening {options.strengthening}, limit {options.limit:g} s")
    for name in ("job", "n", "form", "cycle", "LP", "LP+", "plan", "bound", "gap", "s", "nodes"):
        table.add_column(name, justify="left" if name in ("job", "form") else "right")
    console = Console(width=120)
    for job in options.jobs:
        for servers in options.servers:
            for form in options.forms:
                table.add_row(*row(job, servers, form, options))
    console.print(table)


if __name__ == "__main__":
    main()
