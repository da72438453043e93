"""`joint` takes the same steps however busy the machine is, and what the alternation does with as much work.

``joint`` gets a number of choices of strategies and no time limit, once alone and once beside ``--busy`` processes that
do nothing but calculate. The alternation with both planes exact, whose planes are limited in seconds, gets as many
seconds as ``joint`` took processor seconds alone, also once alone and once beside them. Above the best is above the
best known plan; work is in processor seconds.
"""

import multiprocessing
from contextlib import contextmanager

import ddlopt
from benchmarks.harness import Benchmark, Option, clocked
from ddlopt import instances
from ddlopt.analysis.texts import gap_text
from ddlopt.solvers.contracts import Limits

EXACT = "alternating:strategies=exact,topology=exact"


def spin():
    """Calculate until ended."""
    while True:
        sum(range(10_000))


@contextmanager
def beside(count):
    """So many processes that calculate."""
    processes = [multiprocessing.get_context("spawn").Process(target=spin, daemon=True) for _ in range(count)]
    for process in processes:
        process.start()
    try:
        yield
    finally:
        for process in processes:
            process.kill()
            process.join()


def evenness(asked):
    """Plans and work of both methods, alone and on a busy machine."""
    for name in asked.instances:
        instance = ddlopt.load(f"codesign/{name}")
        best = ddlopt.check(instance, instances.best(f"codesign/{name}")).objective
        seconds = None
        for method in (f"joint:most_choices={asked.choices}", EXACT):
            row = {"instance": name, "method": method}
            for heading, count in (("alone", 0), ("busy", asked.busy)):
                limits = Limits(None if method != EXACT else seconds)
                with beside(count):
                    result, spent = clocked(method, instance, limits, asked.seed)
                if heading == "alone" and method != EXACT:
                    seconds = spent.processor_s
                row |= {
                    f"{heading}, above the best": None if result is None else gap_text(result.objective / best - 1),
                    f"{heading}, work": f"{spent.processor_s:.1f} s",
                }
            yield row


BENCH = Benchmark(
    evenness,
    instances=Option(["candle-n32-d4", "dlrm-n32-d4", "ncf-n32-d4"], quick=["bert-n32-d4"], help="names of instances"),
    choices=Option(6, quick=1, help="choices of strategies that get a design"),
    busy=Option(4, quick=1, help="processes that calculate beside"),
    seed=Option(0),
)
