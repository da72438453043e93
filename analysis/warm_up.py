"""Compiling ahead, for when nobody waits: the kernels of families or methods, several processes at a time."""

import os
import subprocess
import sys
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import suppress
from functools import cache
from importlib import import_module
from pathlib import Path
from pkgutil import walk_packages
from queue import SimpleQueue
from subprocess import DEVNULL, PIPE

from ddlopt import instances
from ddlopt.instances.library import library_folder
from ddlopt.models import plugins
from ddlopt.models.catalogue import FAMILY_NAMES
from ddlopt.models.compilation import left_to_compile, to_stderr
from ddlopt.models.contracts import Instance
from ddlopt.models.errors import SolverError, UnknownNameError
from ddlopt.solvers import catalogue
from ddlopt.solvers.contracts import kernels_of
from ddlopt.solvers.names import split

_MOST_BYTES = 50_000
"""Size of a file up to which a bundled instance is asked what methods need for it."""
_IMPORTS_KERNELS = "from ddlopt.models.kernels import"


def kernel_modules(wanted: Sequence[str] = ()) -> tuple[str, ...]:
    """Modules of kernels that families or methods need.

    Parameters
    ----------
    wanted : sequence of str
        Families (``topology``), methods (``link-exchange``, ``topology/link-exchange``), also with options, or both;
        empty: everything.

    Raises
    ------
    UnknownNameError
        If there is neither a family nor a method of a name.
    """
    if not wanted:
        return tuple(sorted(_of_ddlopt() | _of_others()))
    found: dict[str, None] = {}
    for name in wanted:
        if name in FAMILY_NAMES:
            found |= dict.fromkeys(_in_folders_of(name))
        methods = [(family, method) for family in FAMILY_NAMES for method in _meant(name, family)]
        if not methods:
            raise UnknownNameError(f"there is no family and no method '{name}'; see `ddlopt list`")
        for family, method in methods:
            found |= dict.fromkeys(_of_method(family, method))
    return tuple(found)


def warm_up(
    modules: Iterable[str],
    jobs: int | None = None,
    told: Callable[[str], None] = to_stderr,
    each: Callable[[str], None] | None = None,
) -> int:
    """Compile the kernels of modules, several processes at a time; how many had to be.

    Parameters
    ----------
    modules : iterable of str
    jobs : int, optional
        Processes at a time; by default one a core.
    told : callable
        Called with a line when it begins, if there is anything to compile.
    each : callable, optional
        Called with a line for each module that is done.

    Raises
    ------
    SolverError
        If the kernels of a module cannot be compiled.
    """
    left = left_to_compile(modules)
    if not left:
        return 0
    width = min(len(left), jobs or os.cpu_count() or 1)
    least_s = max(sum(left.values()) / width, max(left.values()))
    told(f"compiling kernels, once, about {max(1.0, least_s):.0f} s")
    longest_first = sorted(left, key=lambda name: -left[name])
    compilers = [_Compiler() for _ in range(width)]
    idle = SimpleQueue[_Compiler]()
    for compiler in compilers:
        idle.put(compiler)

    def compiled(module: str) -> str | None:
        compiler = idle.get()
        try:
            return compiler.compile(module)
        finally:
            idle.put(compiler)

    try:
        with ThreadPoolExecutor(width) as executor:
            futures = {executor.submit(compiled, name): name for name in longest_first}
            for done, future in enumerate(as_completed(futures), start=1):
                problem = future.result()
                if problem:
                    executor.shutdown(cancel_futures=True)
                    raise SolverError(f"the kernels of {futures[future]} cannot be compiled: {problem}")
                if each is not None:
                    each(f"{done} of {len(left)}: {futures[future].removeprefix('ddlopt.')}")
    finally:
        for compiler in compilers:
            compiler.close()
    return len(left)


class _Compiler:
    """A process that compiles one module after the other: to load Numba takes as long as to compile a small one."""

    _CODE = """
import os, sys
from ddlopt.models.compilation import compile_kernels
answers = os.fdopen(os.dup(1), "w")
os.dup2(2, 1)
for line in sys.stdin:
    try:
        compile_kernels([line.strip()], tell=None)
        problem = ""
    except Exception as error:
        problem = f"{type(error).__name__}: {error}".strip().splitlines()[0]
    print(problem, file=answers, flush=True)
"""

    def __init__(self) -> None:
        # What a module prints goes nowhere: a pipe that nobody reads fills up, and answers have one of their own.
        command = [sys.executable, "-c", self._CODE]
        self._process = subprocess.Popen(command, stdin=PIPE, stdout=PIPE, stderr=DEVNULL, text=True)

    def compile(self, module: str) -> str | None:
        """What went wrong, in a line; None if nothing did."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        with suppress(OSError):
            print(module, file=self._process.stdin, flush=True)
        answer = self._process.stdout.readline()
        return answer.strip() or None if answer else f"the compiler ended with exit code {self._process.wait()}"

    def close(self) -> None:
        """Have no process left behind."""
        self._process.kill()
        self._process.communicate()


def _meant(name: str, family: str) -> tuple[str, ...]:
    """The methods of a family that the name of a family or method stands for."""
    if name == family:
        return catalogue.method_names(family)
    method = name.removeprefix(f"{family}/")
    return (method,) if split(method)[0] in catalogue.method_names(family) else ()


def _of_ddlopt() -> set[str]:
    """All modules of ours with kernels, as their text says: hundreds of instances need not be asked what they need."""
    found = set()
    for storey in ("models", "certificates", "solvers", *(() if plugins.hidden() else ("frontier",))):
        (root,) = import_module(f"ddlopt.{storey}").__path__
        for file in Path(root).rglob("*.py"):
            if f"\n{_IMPORTS_KERNELS}" in file.read_text(encoding="utf-8"):
                found.add(".".join(("ddlopt", storey, *file.relative_to(root).with_suffix("").parts)))
    return found


def _of_others() -> set[str]:
    """What methods of other packages need."""
    own = {(entry.family, entry.name) for entry in catalogue.own_entries()}
    others = [(entry.family, entry.name) for entry in catalogue.entries()]
    return {module for each in others if each not in own for module in _of_method(*each)}


def _of_method(family: str, name: str) -> set[str]:
    """What a method needs for any of the bundled instances that it covers and that are not large."""
    method = catalogue.method(name, family)
    return {
        module
        for instance in _small(family)
        if method.refuses(instance) is None
        for module in kernels_of(method, instance)
    }


@cache
def _small(family: str) -> tuple[Instance, ...]:
    folder = Path(str(library_folder(family)))
    files = {name: folder / f"{name.partition('/')[2]}.json" for name in instances.names(family)}
    return tuple(instances.load(name) for name, file in files.items() if file.stat().st_size < _MOST_BYTES)


def _in_folders_of(family: str) -> set[str]:
    """Modules with kernels in the family's folders."""
    found = set()
    for room in (f"ddlopt.models.{family}", f"ddlopt.solvers.{family}"):
        for module in walk_packages(import_module(room).__path__, f"{room}."):
            spec = module.module_finder.find_spec(module.name, None)
            if spec is not None and spec.origin and _IMPORTS_KERNELS in Path(spec.origin).read_text():
                found.add(module.name)
    return found
