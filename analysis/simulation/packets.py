"""A simulation of packets: the tasks of an iteration over TCP in ns-3, which is an extra (``ddlopt[packets]``).

Messages are made smaller, and links slower by the same factor, until the busiest link carries ``packets`` packets: an
iteration takes as long as before, and a simulated packet stands for many. Where an instance has no
real units (its messages take more than a second, or less than a millisecond) its time is scaled too.
"""

import atexit
import contextlib
import json
import math
import subprocess
import sys
import tempfile
import threading
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any, Literal

import numpy as np
from scipy.sparse import csr_array
from scipy.sparse.csgraph import shortest_path

from ddlopt.analysis.simulation.replay import Replay
from ddlopt.models.errors import NotApplicableError, OptionError, SolverError, SolverMissingError
from ddlopt.models.topology.solution import Path

CONTROLS = {"cubic": "TcpCubic", "newreno": "TcpNewReno", "bbr": "TcpBbr", "vegas": "TcpVegas"}
"""Congestion controls by their names in ns-3."""
HEADER_BYTES = 52
"""IPv4 (20), TCP (20) and its time stamps (12) in every packet."""
FRAME_BYTES = 2
"""What a point-to-point link of ns-3 adds to a packet."""
REAL_TIME_S = (1e-3, 1.0)
"""Communication that takes so long is simulated at its own speed, any other in ``NOMINAL_TIME_S``."""
NOMINAL_TIME_S = 0.1
"""As long as a large model's iteration takes."""
DELAY_S = 1e-6
"""200 m of fibre."""
LEAST_TIMEOUT_S = 1e-6
"""The clock of ns-3's TCP counts microseconds."""
BEGIN_S = 1.0
"""Connections have that long to be made before the first message."""
PATIENCE = 50.0
"""How many times as long as the busiest link needs a simulation may run: TCP in trouble waits, and waits longer."""
PROCESS = ("-m", "ddlopt.analysis.simulation.packets_process")
"""What Python runs for a simulation."""
MOST_PACKETS = 10_000_000
"""On the busiest link: hours of simulation."""


@dataclass(frozen=True)
class PacketOptions:
    """How packets go.

    Parameters
    ----------
    packets : int
        Full packets that the busiest link carries in an iteration: the scale.
    delay_s : float
        From one end of a link to the other.
    mtu_bytes : int
        Largest packet, headers included.
    queue_packets : int
        That wait for a link at most; what comes then is lost.
    control : str
        Congestion control, one of ``CONTROLS``.
    headers : bool
        Whether headers take their part of the bandwidth; if not, links are as much faster.
    acknowledgements : {"links", "apart"}, optional
        Over the links of the design, or over return channels of their own. By default over the links where they have
        both directions, else apart.
    steps : bool
        Whether rings go step by step.
    iterations : int
        One after the other over the same connections; what is reported is the last, which begins warm.
    least_timeout_s : float
        TCP's least time before it sends again. Data centres set it to so much; 0.2 s is what Linux has by itself.
    """

    packets: int = 2000
    delay_s: float = DELAY_S
    mtu_bytes: int = 1500
    queue_packets: int = 100
    control: str = "cubic"
    headers: bool = True
    acknowledgements: Literal["links", "apart"] | None = None
    steps: bool = True
    iterations: int = 2
    least_timeout_s: float = 0.01

    def __post_init__(self) -> None:
        for name, value, low, high in (
            ("packets", self.packets, 10, MOST_PACKETS),
            ("delay_s", self.delay_s, 0.0, 1.0),
            ("mtu_bytes", self.mtu_bytes, 100, 65_000),
            ("queue_packets", self.queue_packets, 1, 10**9),
            ("iterations", self.iterations, 1, 100),
            ("least_timeout_s", self.least_timeout_s, LEAST_TIMEOUT_S, 100.0),
        ):
            if not low <= value <= high:
                raise OptionError(f"{name} is {value}; expected {low:g} to {high:g}")
        if self.control not in CONTROLS:
            raise OptionError(f"control is '{self.control}'; use one of: {', '.join(CONTROLS)}")
        if self.acknowledgements not in ("links", "apart", None):
            raise OptionError(f"acknowledgements is '{self.acknowledgements}'; use one of: links, apart")


@dataclass(frozen=True)
class Packets:
    """What came out.

    Parameters
    ----------
    finished : list of float
        Seconds at which each task ended, in the instance's time.
    size_scale, time_scale : float
        Simulated bytes over those of the instance, and seconds over seconds.
    drops, sent_packets : int
        Packets that found a full queue, and those that links carried, acknowledgements included.
    timeouts : int
        Times that a sender's timer ran out, so that it sent anew whatever had not been acknowledged.
    """

    finished: list[float]
    size_scale: float
    time_scale: float
    drops: int
    sent_packets: int
    timeouts: int


def require_ns3() -> None:
    """Raise SolverMissingError unless ns-3 is installed."""
    if find_spec("ns") is None or find_spec("cppyy") is None:
        raise SolverMissingError(
            "engine ns3 is not installed: pip install 'ddlopt[packets]'; the engine flows needs nothing"
        )


def sent_as_packets(replay: Replay, options: PacketOptions, iterations: int = 1) -> Packets:
    """Simulate the tasks of a number of iterations.

    Raises
    ------
    SolverMissingError
        If ns-3 is not installed.
    NotApplicableError
        If acknowledgements have no way back.
    SolverError
        If the simulator fails, or the tasks did not end in fifty times the time that the busiest link needs.
    """
    require_ns3()
    link_time_s = replay.link_time_s / iterations
    if link_time_s == 0:
        raise NotApplicableError("nothing is sent, so that there are no packets to simulate; use the engine flows")
    payload = options.mtu_bytes - HEADER_BYTES
    low, high = REAL_TIME_S
    time_scale = 1.0 if low <= link_time_s <= high else NOMINAL_TIME_S / link_time_s
    busiest = max(replay.rates, key=lambda link: replay.link_bytes[link] / replay.rates[link])
    size_scale = options.packets * payload * iterations / replay.link_bytes[busiest]
    answer = _asked(_request(replay.scaled(size_scale, time_scale), options))
    if not answer["complete"]:
        late = sum(end < 0 for end in answer["ends"])
        raise SolverError(
            f"ns3: {late} of {len(replay.tasks)} messages did not arrive in {PATIENCE:g} times the time that the "
            f"busiest link needs, {answer['drops']} packets were lost; allow longer queues"
        )
    finished = [end / time_scale for end in answer["ends"]]
    return Packets(finished, size_scale, time_scale, answer["drops"], answer["sent_packets"], answer["timeouts"])


def _request(replay: Replay, options: PacketOptions) -> dict[str, Any]:
    payload = options.mtu_bytes - HEADER_BYTES
    faster = 1.0 if options.headers else (options.mtu_bytes + FRAME_BYTES) / payload
    narrowest = min(replay.rates.values())
    acknowledgements = options.acknowledgements or ("links" if replay.both_ways else "apart")
    back = _ways_back(replay) if acknowledgements == "links" else {}
    compute = sum(task.seconds for task in replay.tasks)
    return {
        "nodes": replay.nodes,
        "mtu_bytes": options.mtu_bytes,
        "header_bytes": HEADER_BYTES,
        "control": CONTROLS[options.control],
        "least_timeout_s": options.least_timeout_s,
        "delay_s": options.delay_s,
        "begin_s": BEGIN_S,
        "most_s": PATIENCE * (replay.link_time_s + compute) + 10 * options.least_timeout_s,
        # Parallel links are one of as much bandwidth, with queues as long together.
        "links": [
            (*link, round(8 * faster * rate), math.ceil(options.queue_packets * rate / narrowest))
            for link, rate in replay.rates.items()
        ],
        "paths": [(path, back.get((path[0], path[-1]), ())) for path in replay.paths],
        "tasks": [
            (-1 if task.channel is None else task.channel, max(1, round(task.bytes)), task.seconds, task.after)
            for task in replay.tasks
        ],
    }


def _ways_back(replay: Replay) -> dict[tuple[int, int], Path]:
    """By source and target of a message the shortest way from target to source over the links."""
    tails, heads = zip(*replay.rates, strict=True)
    graph = csr_array((np.ones(len(tails)), (tails, heads)), shape=(replay.nodes, replay.nodes))
    _, before = shortest_path(graph, unweighted=True, return_predecessors=True)
    ways: dict[tuple[int, int], Path] = {}
    for source, target in {(path[0], path[-1]) for path in replay.paths}:
        way = [source]
        while way[-1] != target:
            previous = int(before[target, way[-1]])
            if previous < 0:
                raise NotApplicableError(
                    f"no links lead back from server {target} to server {source}, so that acknowledgements of its "
                    f"messages cannot be sent; use acknowledgements=apart"
                )
            way.append(previous)
        ways[source, target] = tuple(reversed(way))
    return ways


def _asked(request: dict[str, Any]) -> dict[str, Any]:
    """The answer of this thread's process, which takes ten seconds to start and stays for the next simulation."""
    process: subprocess.Popen[str] | None = getattr(_OF_THREAD, "process", None)
    if process is None or process.poll() is not None:
        said = tempfile.TemporaryFile("w+")  # noqa: SIM115 - as long as the process
        process = subprocess.Popen(
            [sys.executable, *PROCESS], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=said, text=True
        )
        _OF_THREAD.process, _OF_THREAD.said = process, said
        atexit.register(process.kill)
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        process.stdin.write(json.dumps(request) + "\n")
        process.stdin.flush()
        answer: dict[str, Any] = json.loads(process.stdout.readline())
    except (OSError, ValueError):
        with contextlib.suppress(subprocess.TimeoutExpired):  # where it has not ended by itself
            process.wait(LAST_WORDS_S)
        process.kill()
        code = process.wait()
        _OF_THREAD.process = None
        _OF_THREAD.said.seek(0)
        lines = [line for line in _OF_THREAD.said.read().splitlines() if line.strip()]
        raise SolverError(f"ns3 failed with exit code {code}: {lines[-1] if lines else 'it said nothing'}") from None
    except BaseException:  # Ctrl-C: what it would answer is no answer to the next request
        process.kill()
        raise
    return answer


LAST_WORDS_S = 5.0
"""That a process has to end by itself, so that its own exit code is told."""
_OF_THREAD = threading.local()
