"""What compiling costs on first use: processor seconds for each method, or each module of kernels, from an empty cache.

A method's figure is for the bundled instances that it covers (those that are not large): everything that is compiled
before its clock, in one process with an empty cache. With ``--update`` the seconds of each module are put into the file
from which the estimate of the line "compiling kernels, once, …" comes.
"""

import json
import os
import subprocess
import sys
import tempfile

from benchmarks.harness import Benchmark, Option
from ddlopt.analysis.warm_up import kernel_modules
from ddlopt.models.catalogue import FAMILY_NAMES
from ddlopt.models.compilation import SECONDS_FILE
from ddlopt.solvers import catalogue

COMPILE = """
import sys, time
from importlib import import_module
from ddlopt.models.compilation import compile_kernels
from ddlopt.models.kernels import kernels_of
import numba
numba.njit(lambda: 0)()
count = sum(len(kernels_of(import_module(name))) for name in sys.argv[1:])
began = time.process_time()
compile_kernels(sys.argv[1:], tell=None)
print(time.process_time() - began, count)
"""


def cold(modules: tuple[str, ...]) -> tuple[float, int]:
    """Processor seconds that the kernels of modules take from an empty cache, and how many there are."""
    with tempfile.TemporaryDirectory() as folder:
        environment = os.environ | {"NUMBA_CACHE_DIR": folder}
        run = subprocess.run(
            [sys.executable, "-c", COMPILE, *modules], env=environment, capture_output=True, text=True, check=True
        )
    seconds, count = run.stdout.split()
    return float(seconds), int(count)


def seconds(asked):
    """By method, or by module."""
    yield from by_module(asked) if asked.modules or asked.update else by_method(asked)


def by_module(asked):
    measured = json.loads(SECONDS_FILE.read_text()) if SECONDS_FILE.exists() else {}
    for module in sorted(kernel_modules(asked.names)):
        spent_s, count = cold((module,))
        measured[module] = round(spent_s, 1)
        yield {"module": module.removeprefix("ddlopt."), "kernels": count, "processor s": f"{spent_s:.1f}"}
    if asked.update:
        SECONDS_FILE.write_text(json.dumps(dict(sorted(measured.items())), indent=1) + "\n")


def by_method(asked):
    known: dict[tuple[str, ...], tuple[float, int]] = {(): (0.0, 0)}
    for method in [f"{family}/{name}" for family in FAMILY_NAMES for name in catalogue.method_names(family)]:
        if asked.names and not {method, method.partition("/")[0]} & set(asked.names):
            continue
        modules = tuple(sorted(kernel_modules([method])))
        if modules not in known:
            known[modules] = cold(modules)
        spent_s, count = known[modules]
        yield {"method": method, "kernels": count, "processor s": f"{spent_s:.1f}"}


BENCH = Benchmark(
    seconds,
    names=Option([], "families, or FAMILY/METHOD; all by default", ["topology/topology-finder"], str, positional=True),
    modules=Option(False, "each module of kernels by itself"),
    update=Option(False, "put the modules' seconds into the package"),
)
