"""Public instances of strategy selection: cost, bound, seconds and peak memory of a method.

``python benchmarks/strategies.py FOLDER B G --time 60``, where FOLDER has B.json.gz and so on, as google/iopddl has
them in benchmarks/.
"""

import argparse
import resource
import time
from pathlib import Path

from ddlopt.instances.readers.iopddl import read_iopddl
from ddlopt.solvers.catalogue import method
from ddlopt.solvers.contracts import Limits

BEST_KNOWN = {
    "example": 445,
    "B": 532_843,
    "G": 217_039,
    "V": 1_617_084,
    "S": 1_511_377_982,
    "A": 6_548_641_531,
    "M": 49_928_460_991,
    "C": 84_102_445_260,
}
"""Costs that others found."""


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("names", nargs="+")
    parser.add_argument("--time", type=float, default=600.0)
    parser.add_argument("--method", default="exact")
    arguments = parser.parse_args()
    print("| instance | nodes / edges | best known | cost | bound | CPU s | wall s | peak GB |")
    print("|---|---|---|---|---|---|---|---|")
    for name in arguments.names:
        instance = read_iopddl(next(arguments.folder.glob(f"*{name}.json*")))
        began = time.process_time()
        result = method(arguments.method, "deployment").solve(instance, Limits(time_s=arguments.time, gap=0.0))
        used = time.process_time() - began
        # Of the whole process so far, which only grows: one instance at a time tells.
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e9
        best = BEST_KNOWN.get(name)
        away = "" if best is None or result.objective is None else f" ({100 * (result.objective / best - 1):+.2f} %)"
        print(
            f"| {name} | {instance.size} / {len(instance.edges)} | {best} | {result.objective}{away} | {result.bound} "
            f"| {used:.1f} | {result.runtime_s:.1f} | {peak:.2f} |",
            flush=True,
        )


if __name__ == "__main__":
    main()
