"""Time, memory and gap of joint from 128 to 1024 servers, where all-reduce dominates.

    python benchmarks/codesign_scaling.py

Every run is a process of its own, whose peak memory counts. The exponent is that of time over servers from the smallest
to the largest size; n² log n is 2.14 from 128 to 1024.
"""

import argparse
import json
import math
import resource
import subprocess
import sys
import time

import ddlopt
from ddlopt.analysis import tables

JOBS = ("bert", "vgg16", "dlrm")
SERVERS = (128, 256, 432, 512, 1024)


def measure(job: str, servers: int, degree: int, time_limit: float, gap: float) -> dict[str, float | int | str]:
    """One solve in this process."""
    instance = ddlopt.generate("codesign", "job", job=job, servers=servers, degree=degree)
    began = time.perf_counter()
    result = ddlopt.solve(instance, "joint", time_limit=time_limit, gap=gap)
    return {
        "job": job,
        "servers": servers,
        "degree": degree,
        "objective": result.objective,
        "bound": result.bound,
        "gap": result.gap,
        "seconds": time.perf_counter() - began,
        "reached_s": reached_s(result, gap),
        "megabytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
        "tax": result.details.get("bandwidth_tax", 0.0),
    }


def reached_s(result, gap: float) -> float:
    """Seconds until the plan was known that is the answer, up to a tenth of the gap asked for."""
    enough = result.objective * (1 + gap / 10)
    points = (each.time_s for each in result.trace if each.incumbent is not None and each.incumbent <= enough)
    return min(points, default=result.runtime_s)


def measured_apart(*arguments: object) -> dict[str, float | int | str] | None:
    """The same in a process of its own; None if it fails."""
    call = [sys.executable, __file__, "--one", *map(str, arguments)]
    done = subprocess.run(call, capture_output=True, text=True, check=False)
    if done.returncode:
        print(done.stderr.strip().splitlines()[-1:], flush=True)
        return None
    return json.loads(done.stdout.splitlines()[-1])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--jobs", nargs="+", default=list(JOBS))
    parser.add_argument("--servers", nargs="+", type=int, default=list(SERVERS))
    parser.add_argument("--degrees", nargs="+", type=int, default=[4, 8])
    parser.add_argument("--time-limit", type=float, default=300.0)
    parser.add_argument("--gap", type=float, default=0.01, help="stop here")
    parser.add_argument("--one", nargs=5, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        job, servers, degree, time_limit, gap = options.one
        print(json.dumps(measure(job, int(servers), int(degree), float(time_limit), float(gap))))
        return
    heads = ("job", "n", "d", "iteration", "gap", "found after", "seconds", "MB", "bandwidth tax", "exponent")
    print(f"| {' | '.join(heads)} |")
    print(f"|---{'|---:' * (len(heads) - 1)}|")
    for job in options.jobs:
        for degree in options.degrees:
            first = None
            for servers in options.servers:
                row = measured_apart(job, servers, degree, options.time_limit, options.gap)
                if row is None:
                    continue
                first = first or row
                exponent = ""
                if row is not first:
                    growth = row["reached_s"] / first["reached_s"]
                    exponent = f"{math.log(growth) / math.log(servers / first['servers']):.2f}"
                print(
                    f"| {job} | {servers} | {degree} | {tables.time_text(row['objective'])} | "
                    f"{tables.gap_text(row['gap'])} | {row['reached_s']:.1f} s | {row['seconds']:.1f} | "
                    f"{row['megabytes']:.0f} | {row['tax']:.3f} | {exponent} |",
                    flush=True,
                )


if __name__ == "__main__":
    main()
