"""What the orders of the papers lose, against proven orders, over ratios of F, B and W, a head, transfers and memory.

A row a pipeline of four devices and eight micro-batches with one of these changed: the least span (or makespan),
proven, and how much longer those of the papers' orders are, in percent; a dash where an order does not fit.
"""

from benchmarks.harness import Benchmark, Option, solved
from ddlopt.instances.generators.deployment import generate
from ddlopt.solvers import catalogue

METHODS = ("gpipe", "1f1b", "zb-h1", "zb-h2", "list-scheduling", "order-search")
TIMES = {
    "1 : 1 : 1": {},
    "2 : 3 : 1": {"forward_s": 2.0, "backward_s": 3.0},
    "1 : 1 : 2": {"weights_s": 2.0},
    "3 : 4 : 2": {"forward_s": 3.0, "backward_s": 4.0, "weights_s": 2.0},
    "a head of 2": {"last": 2.0},
    "makespan, transfers of 1": {"transfer_s": 1.0, "objective": "makespan"},
}


def rows(asked, settings):
    for name, options in settings:
        given = {"stages": 4, "micro_batches": 8, "objective": "span"} | options
        instance = generate("microbatches", 1, **given)
        best = solved("exact", instance, asked.limits)
        lost = {}
        for method in METHODS:
            found = catalogue.method(method, "deployment").solve(instance, asked.limits)
            lost[method] = None if not found.checked else f"{100 * (found.objective / best.objective - 1):.1f} %"
        proven = "proven" if best.gap is not None and best.gap <= asked.limits.gap else f"gap {100 * best.gap:.1f} %"
        yield {"pipeline": name, "least": f"{best.objective:g} s", "is": proven, **lost}


def times(asked):
    """Times F : B : W and others, in memory for as many micro-batches as there are devices."""
    yield from rows(asked, list(TIMES.items())[: asked.settings])


def memory(asked):
    """Unit times, by micro-batches that fit into the memory."""
    settings = [(f"memory {room:g}", {"memory": room}) for room in (7.0, 6.0, 5.0, 4.0, 3.5, 3.0, 2.5)]
    yield from rows(asked, settings[: asked.settings])


BENCH = Benchmark(
    times, memory,
    settings=Option(9, "how many rows of a table", quick=2),
    time_limit=Option(60.0, "seconds for each method", quick=5.0),
)  # fmt: skip
