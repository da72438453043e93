"""Time, memory and gap of joint from 128 to 1024 servers, where all-reduce dominates.

Every run is a process of its own, whose peak memory counts. The exponent is that of time over servers from the smallest
to the largest size; n² log n is 2.14 from 128 to 1024.
"""

import math

import ddlopt
from benchmarks.harness import Benchmark, Option, apart
from ddlopt.analysis.texts import gap_text, time_text


def measure(job: str, servers: int, degree: int, time_limit: float, gap: float) -> dict[str, float]:
    """One solve in this process."""
    instance = ddlopt.generate("codesign", "job", job=job, servers=servers, degree=degree)
    result = ddlopt.solve(instance, "joint", time_limit=time_limit, gap=gap)
    # Until the plan was known that is the answer, up to a tenth of the gap asked for.
    enough = result.objective * (1 + gap / 10)
    points = (each.time_s for each in result.trace if each.incumbent is not None and each.incumbent <= enough)
    return {
        "objective": result.objective,
        "gap": result.gap,
        "seconds": result.runtime_s,
        "reached_s": min(points, default=result.runtime_s),
        "tax": result.details.get("bandwidth_tax", 0.0),
    }


def growth(asked):
    """A row for each job, degree and number of servers."""
    for job in asked.jobs:
        for degree in asked.degrees:
            first = None
            for servers in asked.servers:
                found, spent = apart(measure, job, servers, degree, asked.time_limit, asked.gap)
                first = first or (servers, found)
                exponent = ""
                if servers > first[0]:
                    slower = math.log(found["reached_s"] / first[1]["reached_s"])
                    exponent = f"{slower / math.log(servers / first[0]):.2f}"
                yield {
                    "job": job, "n": servers, "d": degree, "iteration": time_text(found["objective"]),
                    "gap": gap_text(found["gap"]), "found after": f"{found['reached_s']:.1f} s",
                    "seconds": f"{found['seconds']:.1f}", "MB": f"{spent.peak_bytes / 2**20:.0f}",
                    "bandwidth tax": f"{found['tax']:.3f}", "exponent": exponent,
                }  # fmt: skip


BENCH = Benchmark(
    growth,
    jobs=Option(["bert", "vgg16", "dlrm"], quick=["vgg16"]),
    servers=Option([128, 256, 432, 512, 1024], quick=[12, 16]),
    degrees=Option([4, 8], quick=[4]),
    time_limit=Option(300.0, quick=2.0),
    gap=Option(0.01),
)
