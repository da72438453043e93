"""What `joint` and the alternation with both planes exact find with equal work, alone and on a busy machine.

Work is processor seconds: after ``--work`` of them a solve is interrupted as by Ctrl-C, however long that took. *Busy*
is beside ``--busy`` processes that do nothing but calculate. Above the best is above the best known plan. The planes of
the alternation are limited in seconds of the clock on the wall; steps of ``joint`` are not.
"""

import multiprocessing
import signal
from contextlib import contextmanager

import ddlopt
from benchmarks.harness import Benchmark, Option, clocked
from ddlopt import instances
from ddlopt.analysis.texts import gap_text
from ddlopt.solvers.contracts import Limits

METHODS = ("joint", "alternating:strategies=exact,topology=exact")
WARM_UP = "codesign/tiny-tables-n4-d2"


def spin():
    """Calculate until ended."""
    while True:
        sum(range(10_000))


@contextmanager
def beside(count):
    """A number of processes that calculate."""
    processes = [multiprocessing.get_context("spawn").Process(target=spin, daemon=True) for _ in range(count)]
    for process in processes:
        process.start()
    try:
        yield
    finally:
        for process in processes:
            process.kill()
            process.join()


@contextmanager
def interrupted_after(processor_s):
    """Somebody presses Ctrl-C after a number of processor seconds."""
    before = signal.signal(signal.SIGPROF, lambda *_: signal.raise_signal(signal.SIGINT))
    signal.setitimer(signal.ITIMER_PROF, processor_s)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)


def evenness(asked):
    """Plans of both methods."""
    for method in METHODS:  # imports settle
        clocked(method, WARM_UP, Limits(5.0))
    for name in asked.instances:
        instance = ddlopt.load(f"codesign/{name}")
        best = ddlopt.check(instance, instances.best(f"codesign/{name}")).objective
        for method in METHODS:
            row = {"instance": name, "method": method}
            for heading, count in (("alone", 0), ("busy", asked.busy)):
                with beside(count), interrupted_after(asked.work):
                    result, spent = clocked(method, instance, Limits(), asked.seed)
                told = None if result is None else gap_text(result.objective / best - 1)
                row |= {f"{heading}, above the best": told, f"{heading}, on the wall": f"{spent.wall_s:.0f} s"}
            yield row


BENCH = Benchmark(
    evenness,
    instances=Option(["candle-n32-d4", "dlrm-n32-d4"], quick=["candle-n32-d4"], help="names of instances"),
    work=Option(10.0, "processor seconds of a solve", quick=1.0),
    busy=Option(2, "processes that calculate beside", quick=1),
    seed=Option(0),
)
