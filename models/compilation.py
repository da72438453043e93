"""Compiling before the clock: what a method names as its kernels is compiled, or loaded, ahead of its solve.

A module of kernels is named by a string and imported when it is needed, as Numba is: see :mod:`ddlopt.models.kernels`.
"""

import json
import sys
import time
from collections.abc import Callable, Iterable
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ddlopt.models.kernels import Kernel

SECONDS_FILE = Path(__file__).with_name("kernel_seconds.json")
"""Processor seconds that compiling each module of kernels took, as ``benchmarks/suite/first_use.py`` measured them."""
_SECONDS_A_KERNEL = 2.0
"""Of a kernel whose module is not in that file."""

Tell = Callable[[str], None]

_ready: set[str] = set()


def to_stderr(line: str) -> None:
    """Print a line on standard error."""
    print(line, file=sys.stderr, flush=True)


def compile_kernels(modules: Iterable[str], tell: Tell | None = to_stderr) -> float:
    """Have the kernels of these modules ready to be called: compiled once and kept on disk, loaded ever after.

    Parameters
    ----------
    modules : iterable of str
        Full names; what was made ready in this process before costs nothing.
    tell : callable, optional
        Told in one line, with the seconds to expect, if something has to be compiled.

    Returns
    -------
    float
        Wall-clock seconds that it took.
    """
    new = [name for name in dict.fromkeys(modules) if name not in _ready]
    if not new:
        return 0.0
    began = time.perf_counter()
    kernels = {name: _kernels_of(name) for name in new}
    expected_s = sum(_expected_s(name, kernels[name]) for name in new)
    if expected_s > 0 and tell is not None:
        tell(f"compiling kernels, once, about {max(1.0, expected_s):.0f} s")
    for name in new:
        for kernel in kernels[name]:
            kernel.prepare()
        _ready.add(name)
    return time.perf_counter() - began


def left_to_compile(modules: Iterable[str]) -> dict[str, float]:
    """Of these modules those with kernels that are not on disk yet, and the processor seconds to expect of each."""
    expected = {name: _expected_s(name, _kernels_of(name)) for name in dict.fromkeys(modules) if name not in _ready}
    return {name: seconds for name, seconds in expected.items() if seconds > 0}


def _kernels_of(module: str) -> "list[Kernel]":
    from ddlopt.models.kernels import kernels_of

    return kernels_of(import_module(module))


def _expected_s(module: str, kernels: "list[Kernel]") -> float:
    missing = sum(not kernel.kept for kernel in kernels)
    if missing == 0:
        return 0.0
    of_all = _measured().get(module, _SECONDS_A_KERNEL * len(kernels))
    return of_all * missing / len(kernels)


@cache
def _measured() -> dict[str, float]:
    return json.loads(SECONDS_FILE.read_text()) if SECONDS_FILE.exists() else {}
