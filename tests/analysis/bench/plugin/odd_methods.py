"""Methods as another package would bring them, each with a fault that a sweep must survive."""

import ctypes
import os
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from ddlopt.solvers.heuristic import Heuristic
from ddlopt.solvers.topology.topoopt.topology_finder import TopologyFinder


class _Odd(Heuristic):
    family: ClassVar[str] = "topology"
    name: ClassVar[str]

    def answer(self, instance, seed, clock, start):
        self.misbehave(instance, clock)
        return TopologyFinder().answer(instance, seed, clock, start)


@dataclass(frozen=True)
class Crash(_Odd):
    """Ends its process."""

    name: ClassVar[str] = "crash"

    def misbehave(self, instance, clock):
        os.kill(os.getpid(), signal.SIGSEGV)


@dataclass(frozen=True)
class Hang(_Odd):
    """Reports something and does not heed its limit."""

    name: ClassVar[str] = "hang"

    def misbehave(self, instance, clock):
        clock.report(17.0, 11.5)
        time.sleep(1000)


@dataclass(frozen=True)
class Hog(_Odd):
    """Takes more memory than there is."""

    name: ClassVar[str] = "hog"

    def misbehave(self, instance, clock):
        self.memory = bytearray(1 << 40)


@dataclass(frozen=True)
class Slow(_Odd):
    """Takes its time."""

    seconds: float = 0.5

    name: ClassVar[str] = "slow"

    def misbehave(self, instance, clock):
        time.sleep(self.seconds)


_DEAF = """
import os, signal, sys, time
for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
    signal.signal(number, signal.SIG_IGN)
print("a solver's licence")
if not os.fork():  # one child in the group
    time.sleep(1000)
if not os.fork():  # one that has left it, and whose parent is gone
    os.setsid()
    if os.fork():
        os._exit(0)
    print("a child's greeting", flush=True)
    open(sys.argv[1], "w").close()
    time.sleep(1000)
time.sleep(1000)
"""


@dataclass(frozen=True)
class Stubborn(_Odd):
    """Starts a solver that ignores SIGTERM, as do its children; waits for it, or leaves it running."""

    began: str = ""
    waits: bool = True

    name: ClassVar[str] = "stubborn"

    def misbehave(self, instance, clock):
        began = Path(f"{self.began}.{os.getpid()}")
        solver = subprocess.Popen([sys.executable, "-c", _DEAF, began])
        while not began.exists():
            time.sleep(0.01)
        if self.waits:
            solver.wait()


@dataclass(frozen=True)
class Loud(_Odd):
    """Writes on standard output in every way there is."""

    name: ClassVar[str] = "loud"

    def refuses(self, instance):
        os.write(1, b"noise\n")

    def misbehave(self, instance, clock):
        print("noise")
        print("noise", file=sys.__stdout__)
        os.write(1, b"noise\n")
        ctypes.CDLL(None).puts(b"noise")
        subprocess.run(["echo", "noise"], check=True)


@dataclass(frozen=True)
class Raises(_Odd):
    """Raises what nobody expects."""

    what: str = "SystemExit"

    name: ClassVar[str] = "raises"

    def misbehave(self, instance, clock):
        if self.what == "RecursionError":
            self.misbehave(instance, clock)
        raise {"SystemExit": SystemExit(0), "KeyboardInterrupt": KeyboardInterrupt(), "MemoryError": MemoryError(),
               "GeneratorExit": GeneratorExit(), "BaseException": BaseException("\x1b[31m")}[self.what]  # fmt: skip


os.write(1, b"noise\n")

__all__ = ["Crash", "Hang", "Hog", "Loud", "Raises", "Slow", "Stubborn"]
