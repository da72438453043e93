"""What symmetry saves in co-design: identical tables are counted instead of choosing for each.

For every job: the program that bounds all topologies (``StrategyBound``), with every layer by itself and with twins
counted; its size, the time to build it, the processor time to solve it to the gap, and what it proves, in ms. A table
may be whole on the server whose turn it is (``round_robin``) or on any (``all``). Beside it the bound by prices, which
needs no solver.
"""

import itertools

import pyomo.environ as pyo

from benchmarks.harness import Benchmark, Option, peak_bytes, shown, timed
from ddlopt.frontier.codesign.prices.prices import best_prices
from ddlopt.instances.generators.codesign import generate
from ddlopt.models.codesign.formulations.strategy_bound import StrategyBound
from ddlopt.models.codesign.symmetry.twins import twin_layers
from ddlopt.models.codesign.tables import tables_of
from ddlopt.solvers.backends.highs import Highs
from ddlopt.solvers.exact import build_model


def solved(instance, collapse, limits):
    """The cells of a row: size, times and what was proven; and value and bound."""
    formulation = StrategyBound(collapse=collapse)
    model, building = timed(build_model, "codesign", formulation, instance)
    outcome, solving = timed(Highs().solve, model, limits)
    integers = sum(variable.is_integer() or variable.is_binary() for variable in model.component_data_objects(pyo.Var))
    value, bound = (
        None if each is None else formulation.objective_value(instance, each)
        for each in (outcome.objective, outcome.bound)
    )
    figures = outcome.figures
    cells = {
        "form": "counts" if collapse else "each", "integers": integers, "columns": figures["columns"],
        "rows": figures["rows"], "build s": building.wall_s, "solve CPU s": solving.processor_s,
        "nodes": figures["nodes"], "best": shown(value and 1e3 * value, ".4f"), "bound": f"{1e3 * bound:.4f}",
    }  # fmt: skip
    return cells, value, bound


def twins(asked):
    """A row for each form."""
    for job, servers, owners in itertools.product(asked.jobs, asked.servers, ("round_robin", "all")):
        instance = generate("job", job=job, servers=servers, owners=owners)
        twins = [len(layers) for layers in twin_layers(tables_of(instance)) if len(layers) > 1]
        prices, spent = timed(best_prices, tables_of(instance))
        row = {
            "job": job, "n": servers, "owner": owners, "prices s": spent.wall_s,
            "twins": f"{len(twins)} of {min(twins)}..{max(twins)}" if twins else "none",
            "prices ≥": f"{1e3 * prices.value_s:.4f}",
        }  # fmt: skip
        found = []
        for collapse in (False, True) if twins else (False,):
            cells, *proven = solved(instance, collapse, asked.limits)
            found.append(proven)
            yield row | cells
        for (value, _), (_, bound) in itertools.permutations(found, 2):
            if value is not None and bound > value * (1 + 1e-4):
                raise AssertionError(f"{instance.name}: the two forms contradict each other: {found}")
    yield f"Largest memory {peak_bytes() / 2**20:.0f} MB."


BENCH = Benchmark(
    twins,
    jobs=Option(["dlrm", "ncf"], quick=["ncf"]),
    servers=Option([12, 16, 32], quick=[12]),
    time_limit=Option(60.0, quick=2.0),
    gap=Option(1e-5),
)
