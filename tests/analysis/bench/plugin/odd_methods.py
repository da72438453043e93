"""Methods as another package would bring them, each with a fault that a sweep must survive."""

import os
import signal
import time
from dataclasses import dataclass
from typing import ClassVar

from ddlopt.solvers.heuristic import Heuristic
from ddlopt.solvers.topology.topology_finder import TopologyFinder


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


__all__ = ["Crash", "Hang", "Hog", "Slow"]
