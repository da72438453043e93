"""What symmetry saves in co-design: counting alike tables instead of choosing for each, and servers in one orbit.

For every job: the program that bounds all topologies (``StrategyBound``), with every layer by itself and with twins
counted; its size, the time to build it, the processor time to solve it to the gap, and what it proves. A table may be
whole on the server whose turn it is (``round_robin``) or on any (``all``). Beside it the bound by prices, which needs
no solver, and the number of orbits of servers under the automorphisms.
"""

import argparse
import itertools
import resource
import time

import pyomo.environ as pyo
from rich.console import Console
from rich.table import Table

from ddlopt.instances.generators.codesign import generate
from ddlopt.models.codesign.prices import best_prices
from ddlopt.models.codesign.strategy_bound import StrategyBound
from ddlopt.models.codesign.symmetry import SEARCHED_SERVERS, server_symmetry
from ddlopt.models.codesign.twins import twin_layers
from ddlopt.solvers.backends.highs import Highs
from ddlopt.solvers.contracts import Limits
from ddlopt.solvers.exact import build_model


def timed(work):
    wall, cpu = time.perf_counter(), time.process_time()
    result = work()
    return result, time.perf_counter() - wall, time.process_time() - cpu


def solved(instance, collapse, limits):
    """The cells of a row: size, times and what was proven."""
    formulation = StrategyBound(collapse=collapse)
    model, building_s, _ = timed(lambda: build_model("codesign", formulation, instance))
    outcome, _, cpu_s = timed(lambda: Highs().solve(model, limits))
    integers = sum(variable.is_integer() or variable.is_binary() for variable in model.component_data_objects(pyo.Var))
    value, bound = (
        None if each is None else formulation.objective_value(instance, each)
        for each in (outcome.objective, outcome.bound)
    )
    figures = outcome.figures
    cells = [f"{integers}", f"{figures['columns']}", f"{figures['rows']}", f"{building_s:.2f}", f"{cpu_s:.2f}"]
    cells += [f"{figures['nodes']}", "-" if value is None else f"{1e3 * value:.4f}", f"{1e3 * bound:.4f}"]
    return cells, value, bound


def table_of(job, sizes, limits):
    table = Table(title=f"{job}: StrategyBound to a gap of {limits.gap:g}; bounds in ms")
    for column in ("n", "owner", "twins", "orbits", "prices s", "prices ≥", "form"):
        table.add_column(column)
    for column in ("integers", "columns", "rows", "build s", "solve CPU s", "nodes", "best", "bound"):
        table.add_column(column, justify="right")
    for servers, owners in itertools.product(sizes, ("round_robin", "all")):
        instance = generate("job", job=job, servers=servers, owners=owners)
        twins = [len(layers) for layers in twin_layers(instance.tables) if len(layers) > 1]
        orbits = str(len(server_symmetry(instance.tables).orbits)) if servers <= SEARCHED_SERVERS else "-"
        prices, prices_s, _ = timed(lambda at=instance: best_prices(at.tables))
        shown = f"{len(twins)} of {min(twins)}..{max(twins)}" if twins else "none"
        told = [str(servers), owners, shown, orbits, f"{prices_s:.2f}", f"{1e3 * prices.value_s:.4f}"]
        found = []
        for collapse in (False, True) if twins else (False,):
            cells, value, bound = solved(instance, collapse, limits)
            table.add_row(*told, "counts" if collapse else "each", *cells)
            told = [""] * len(told)
            found.append((value, bound))
        if any(
            value is not None and bound > value * (1 + 1e-4)
            for (value, _), (_, bound) in itertools.permutations(found, 2)
        ):
            raise AssertionError(f"{instance.name}: the two forms contradict each other: {found}")
    return table


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--jobs", default="dlrm,ncf")
    parser.add_argument("--servers", default="12,16,32")
    parser.add_argument("--time-limit", type=float, default=60.0)
    parser.add_argument("--gap", type=float, default=1e-5)
    options = parser.parse_args()
    console = Console(width=180)
    limits = Limits(time_s=options.time_limit, gap=options.gap)
    for job in options.jobs.split(","):
        console.print(table_of(job, map(int, options.servers.split(",")), limits))
    console.print(f"largest memory {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:.0f} MB")


if __name__ == "__main__":
    main()
