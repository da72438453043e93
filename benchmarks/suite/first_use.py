"""What compiling costs on first use: processor seconds for each method, or each module of kernels, from an empty cache.

    python benchmarks/first_use.py [FAMILY|FAMILY/METHOD…] [--modules] [--write]

A method's figure is for the bundled instances that it covers (those that are not large): everything that is compiled
before its clock, in one process with an empty cache. ``--modules`` measures each module of kernels by itself;
``--write`` puts that into the file from which the estimate of the line "compiling kernels, once, …" comes.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile

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


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", help="families, methods")
    parser.add_argument("--modules", action="store_true", help="each module of kernels by itself")
    parser.add_argument("--write", action="store_true", help="put the modules' seconds into the package")
    options = parser.parse_args()
    if options.modules or options.write:
        measured = json.loads(SECONDS_FILE.read_text()) if SECONDS_FILE.exists() else {}
        for module in sorted(kernel_modules(options.names)):
            seconds, count = cold((module,))
            measured[module] = round(seconds, 1)
            print(f"| {module.removeprefix('ddlopt.')} | {count} | {seconds:.1f} |", flush=True)
        if options.write:
            SECONDS_FILE.write_text(json.dumps(dict(sorted(measured.items())), indent=1) + "\n")
        return
    known: dict[tuple[str, ...], tuple[float, int]] = {(): (0.0, 0)}
    methods = [f"{family}/{name}" for family in FAMILY_NAMES for name in catalogue.method_names(family)]
    for method in methods:
        if options.names and not {method, method.partition("/")[0]} & set(options.names):
            continue
        modules = tuple(sorted(kernel_modules([method])))
        if modules not in known:
            known[modules] = cold(modules)
        seconds, count = known[modules]
        print(f"| {method} | {count} | {seconds:.1f} |", flush=True)


if __name__ == "__main__":
    main()
