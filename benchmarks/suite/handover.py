"""Handing a model to HiGHS: our arrays beside Pyomo's own interfaces, the same model in the same run.

An assignment-like model (each client to one open site): n² + n columns, n² + n rows, 3 n² nonzeros. "Hand over" is from
the finished Pyomo model to HiGHS holding it; "both" adds building that model from the same rules. Best of the repeats.
"""

import argparse
import gc
import time
from types import SimpleNamespace

import highspy
import pyomo.environ as pyo
from pyomo.contrib.appsi.solvers import Highs as AppsiHighs
from pyomo.contrib.solver.solvers.highs import Highs as ContribHighs
from rich.console import Console
from rich.table import Table

from ddlopt.solvers.backends.highs import pass_model
from ddlopt.solvers.backends.matrix import linear_model
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
    highs = highspy.Highs()
    highs.silent()
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
    start = time.perf_counter()
    model = build(SimpleNamespace(name="assignment", size=size))
    built = time.perf_counter()
    highs = hand_over(model)
    handed = time.perf_counter()
    lp = highs.getLp()
    return built - start, handed - built, (highs.getNumCol(), highs.getNumRow(), highs.getNumNz(), sum(lp.col_cost_))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sizes", type=int, nargs="+", default=[100, 173, 300], help="clients and sites, each")
    parser.add_argument("--repeat", type=int, default=3)
    arguments = parser.parse_args()
    table = Table(title="handing an assignment-like model to HiGHS: times as slow as ours")
    for heading in ("columns", "rows", "nonzeros", "way", "build s", "hand over s", "hand over, ratio", "both, ratio"):
        table.add_column(heading, justify="left" if heading == "way" else "right")
    for size in arguments.sizes:
        runs = [{way: measure(size, way) for way in WAYS} for _ in range(arguments.repeat)]
        shapes = {shape for run in runs for *_, shape in run.values()}
        if len(shapes) != 1:
            raise SystemExit(f"the models differ: {shapes}")
        (columns, rows, nonzeros, _) = shapes.pop()
        best = {way: [min(run[way][k] for run in runs) for k in (0, 1)] for way in WAYS}
        both = {way: min(sum(run[way][:2]) for run in runs) for way in WAYS}
        for way, (build, hand_over) in best.items():
            table.add_row(
                f"{columns:,}", f"{rows:,}", f"{nonzeros:,}", way, f"{build:.2f}", f"{hand_over:.2f}",
                f"{hand_over / best['ours'][1]:.1f}", f"{both[way] / both['ours']:.1f}",
            )  # fmt: skip
    Console(width=120).print(table)


if __name__ == "__main__":
    main()
