"""The joint program of strategies and topology: its relaxations, and how solve times grow with the servers.

``cycle`` is the iteration time on one cycle of links, which bounds the search from above. ``LP`` are relaxations of
:class:`JointStrategyTopology`, without and with (+) the rows of ``StrategyBound``. Then, with these rows, the best
plan, its bound within generator rings, its gap, processor seconds from the instance on, and the nodes of the search.
Memory of the GPUs is not limited, so that few servers are enough. Milliseconds of an iteration throughout.
"""

from benchmarks.harness import Benchmark, Option, shown, timed
from ddlopt.instances.generators import generate
from ddlopt.models.codesign.formulations.joint_milp import JointStrategyTopology
from ddlopt.models.codesign.formulations.rows.coupling import cycle_time_s
from ddlopt.models.errors import SolverError
from ddlopt.solvers.exact import Exact, lp_relaxation


def milliseconds(seconds):
    return shown(seconds and 1e3 * seconds)


def relaxation(instance, **options):
    """LP bound; None where there is none."""
    try:
        return lp_relaxation(JointStrategyTopology(**options), instance).objective
    except SolverError:
        return None


def rows(asked):
    """A row for each job, and number of servers."""
    for job in asked.jobs:
        for servers in asked.servers:
            drawn = {"job": job, "servers": servers, "degree": asked.degree, "memory_gigabytes": None}
            instance = generate("codesign", kind="job", **drawn)
            plain, bounded = (relaxation(instance, bounds=bounds) for bounds in (False, True))
            method = Exact("joint-milp", "codesign", JointStrategyTopology())
            result, spent = timed(method.solve, instance, asked.limits)
            yield {
                "job": job, "n": servers, "cycle": milliseconds(cycle_time_s(instance)),
                "LP": milliseconds(plain), "LP+": milliseconds(bounded), "plan": milliseconds(result.objective),
                "bound": milliseconds(result.scope_bound if result.scope else result.bound),
                "gap": shown(result.scope_gap, ".2%"), "s": f"{spent.processor_s:.1f}",
                "nodes": f"{result.details.get('nodes', 0):.0f}",
            }  # fmt: skip


BENCH = Benchmark(
    rows,
    jobs=Option(["dlrm", "vgg16", "bert", "candle"], quick=["dlrm"]),
    servers=Option([4, 5, 6, 8], quick=[4]),
    degree=Option(2, "ports of a server"),
    time_limit=Option(100.0, quick=5.0),
)
