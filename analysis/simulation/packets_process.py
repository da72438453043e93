"""What runs beside ns-3, in a process of its own: JSON of a network on standard input, of times on standard output.

``python -m ddlopt.analysis.simulation.packets_process``; a line is a request, as
:mod:`ddlopt.analysis.simulation.packets` writes it, and is answered in a line. ns-3 keeps one simulation in global
variables and says what it likes on standard output, so that it does not share a process with anything.
"""

import json
import os
import sys
from pathlib import Path
from typing import Any


def main() -> None:
    """Answer requests until there are no more."""
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    from ns import ns  # type: ignore[import-not-found, unused-ignore]

    cpp = ns.cppyy
    cpp.cppdef(Path(__file__).with_name("packets.cc").read_text(encoding="utf-8"))
    for line in sys.stdin:
        answers.write(json.dumps(simulated(cpp, json.loads(line))) + "\n")
        answers.flush()
        cpp.gbl.ns3.Simulator.Destroy()
    sys.stderr.flush()
    # The interpreter of C++ takes its objects apart in an order that ns-3 does not survive.
    os._exit(0)


def simulated(cpp: Any, request: dict[str, Any]) -> dict[str, Any]:
    """Times of tasks and what was sent."""
    replay = cpp.gbl.ddlopt.Replay()
    integers = cpp.gbl.std.vector["int"]
    replay.Nodes(*(request[name] for name in ("nodes", "mtu_bytes", "header_bytes", "control", "least_timeout_s")))
    for tail, head, bits_per_s, queue in request["links"]:
        replay.Link(tail, head, bits_per_s, request["delay_s"], queue)
    for path, back in request["paths"]:
        replay.Open(integers(path), integers(back))
    for channel, size, seconds, after in request["tasks"]:
        replay.Add(channel, size, seconds, integers(after))
    complete = bool(replay.Run(request["begin_s"], request["most_s"]))
    return {
        "complete": complete,
        "ends": list(replay.ends),
        "drops": int(replay.drops),
        "timeouts": int(replay.timeouts),
        "sent_packets": int(replay.sent_packets),
        "sent_bytes": int(replay.sent_bytes),
    }


if __name__ == "__main__":
    main()
