"""Handing a model to HiGHS: our arrays beside Pyomo's own interfaces, the same model in the same run.

An assignment-like model (each client to one open site): n² + n columns, n² + n rows, 3 n² nonzeros. "Hand over" is from
the finished Pyomo model to HiGHS holding it; "both" adds building that model from the same rules. Least processor
seconds of the repeats; ratios are times as slow as ours.
"""

import gc
from types import SimpleNamespace

import pyomo.environ as pyo
from pyomo.contrib.appsi.solvers import Highs as AppsiHighs
from pyomo.contrib.solver.solvers.highs import Highs as ContribHighs

from benchmarks.harness import Benchmark, Option, paired, timed
from ddlopt.solvers.backends.highs import pass_model
from ddlopt.solvers.backends.matrix import linear_model
from ddlopt.solvers.backends.silent_highs import SilentHighs
from ddlopt.solvers.exact import build_model


class Assignment:
    """Open sites and assign each client to one of them."""

    sense = "minimize"

    def build(self, block, instance):
        block.SITES = pyo.RangeSet(0, instance.size - 1)
        block.CLIENTS = pyo.RangeSet(0, instance.size - 1)
        block.assign = pyo.Var(block.CLIENTS, block.SITES, domain=pyo.Binary)
        block.open = pyo.Var(block.SITES, domain=pyo.Binary)

        @block.Constraint(block.CLIENTS)
        def client_is_served(b, i):
            return sum(b.assign[i, j] for j in b.SITES) == 1

        @block.Constraint(block.CLIENTS, block.SITES)
        def site_is_open(b, i, j):
            return b.assign[i, j] <= b.open[j]

        block.objective = pyo.Expression(
            expr=sum((7 * i + 13 * j) % 101 * block.assign[i, j] for i in block.CLIENTS for j in block.SITES)
            + 50 * sum(block.open[j] for j in block.SITES)
        )


def build_stock(instance):
    model = pyo.ConcreteModel()
    model.assignment = pyo.Block()
    Assignment().build(model.assignment, instance)
    model.objective = pyo.Objective(expr=model.assignment.objective)
    return model


def build_ours(instance):
    return build_model("assignment", Assignment(), instance)


def hand_over_ours(model):
    highs = SilentHighs()
    pass_model(highs, linear_model(model))
    return highs


def hand_over_contrib(model):
    solver = ContribHighs()
    solver.set_instance(model)
    return solver._solver_model


def hand_over_appsi(model):
    solver = AppsiHighs()
    solver.set_instance(model)
    return solver._solver_model


WAYS = {
    "ours": (build_ours, hand_over_ours),
    "pyomo highs": (build_stock, hand_over_contrib),
    "pyomo appsi": (build_stock, hand_over_appsi),
}


def measure(size, way):
    """Seconds of building and of handing over, and what HiGHS then holds."""
    build, hand_over = WAYS[way]
    gc.collect()
    model, building = timed(build, SimpleNamespace(name="assignment", size=size))
    highs, handing = timed(hand_over, model)
    held = highs.getNumCol(), highs.getNumRow(), highs.getNumNz(), sum(highs.getLp().col_cost_)
    return building.processor_s, handing.processor_s, held


def handing(asked):
    """A row for each way and size."""
    for size in asked.sizes:
        runs = paired(asked.repeat, {way: lambda way=way, n=size: measure(n, way) for way in WAYS})
        found = {way: [figures for figures, _ in own] for way, own in runs.items()}
        shapes = {held for own in found.values() for *_, held in own}
        if len(shapes) != 1:
            raise SystemExit(f"the models differ: {shapes}")
        columns, rows, nonzeros, _ = shapes.pop()
        least = {way: [min(run[k] for run in own) for k in (0, 1)] for way, own in found.items()}
        both = {way: min(build + hand for build, hand, _ in own) for way, own in found.items()}
        for way, (build, hand) in least.items():
            yield {
                "way": way, "columns": f"{columns:,}", "rows": f"{rows:,}", "nonzeros": f"{nonzeros:,}",
                "build s": f"{build:.2f}", "hand over s": f"{hand:.2f}",
                "hand over, ratio": f"{hand / least['ours'][1]:.1f}", "both, ratio": f"{both[way] / both['ours']:.1f}",
            }  # fmt: skip


BENCH = Benchmark(
    handing,
    sizes=Option([100, 173, 300], "clients and sites, each", quick=[30]),
    repeat=Option(3),
)
