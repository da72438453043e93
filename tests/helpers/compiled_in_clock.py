"""Solve with a family's methods, each in a forked process; a line of JSON on each tells what compiled in its clock.

    python tests/helpers/compiled_in_clock.py FAMILY [METHOD…]

Each method answers the smallest bundled instance of each problem that it covers. ``late`` lists the compiled functions
that were compiled, or loaded from the disk, after the clock had begun.
"""

import contextlib
import json
import os
import sys
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from pkgutil import walk_packages

from numba.core.dispatcher import Dispatcher

from ddlopt import instances
from ddlopt.instances.library import library_folder
from ddlopt.solvers import catalogue, contracts
from ddlopt.solvers.contracts import Limits

LIMIT_S = 4.0
SMALLEST = 12


def problems(family):
    """The smallest instances of each problem of a family, by size of file."""
    found = {}
    folder = Path(str(library_folder(family)))
    by_size = sorted(instances.names(family), key=lambda name: (folder / f"{name.split('/')[1]}.json").stat().st_size)
    for name in by_size:
        instance = instances.load(name)
        found.setdefault(getattr(instance, "problem", family), []).append((name, instance))
    return {problem: known[:SMALLEST] for problem, known in found.items()}


def watched(method, instance):
    """What a solve compiled or loaded in its clock, and what it found."""
    late, ahead = [], [0]
    compiles, ahead_of_clock = Dispatcher.compile, contracts.compile_kernels

    def compiling(self, signature):
        module = self.py_func.__module__
        if not ahead[0] and module.startswith("ddlopt."):
            late.append(f"{module}.{self.py_func.__name__}")
        return compiles(self, signature)

    def compiling_ahead(*arguments, **options):
        ahead[0] += 1
        try:
            return ahead_of_clock(*arguments, **options)
        finally:
            ahead[0] -= 1

    Dispatcher.compile, contracts.compile_kernels = compiling, compiling_ahead
    try:
        result = method.solve(instance, Limits(time_s=LIMIT_S), seed=0)
        told = {"objective": result.objective, "status": str(result.status), "runtime_s": result.runtime_s}
        told["compile_s"] = result.compile_s
    except Exception as problem:
        told = {"error": f"{type(problem).__name__}: {problem}"}
    return told | {"late": sorted(set(late))}


def forked(told):
    """What a function gives, called in a child of this process."""
    own, theirs = os.pipe()
    child = os.fork()
    if child == 0:
        with contextlib.redirect_stdout(sys.stderr), os.fdopen(theirs, "w") as pipe:
            json.dump(told(), pipe)
        os._exit(0)
    os.close(theirs)
    with os.fdopen(own) as pipe:
        text = pipe.read()
    os.waitpid(child, 0)
    return json.loads(text) if text else {"error": "died", "late": []}


def rooms_of(family):
    """Packages of a family, in the storeys that have kernels; a family need not have a room in each."""
    names = (f"ddlopt.{storey}.{family}" for storey in ("models", "certificates", "solvers", "frontier"))
    return [name for name in names if find_spec(name) is not None]


def main(family, *wanted):
    for package in rooms_of(family):
        for module in walk_packages(import_module(package).__path__, f"{package}."):
            import_module(module.name)
    for problem, known in problems(family).items():
        for name in wanted or catalogue.method_names(family):
            method = catalogue.method(name, family)
            told = None
            for full, instance in known:
                if method.refuses(instance) is None:
                    told = forked(lambda method=method, instance=instance: watched(method, instance))
                    told |= {"problem": problem, "method": name, "instance": full}
                    if not told.get("error", "").startswith("NotApplicableError"):  # no heuristic's links do there
                        break
            if told is not None:
                print(json.dumps(told), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
