"""The bundled topology instances: everything is derived here, in the generators or in the workloads."""

from collections.abc import Iterator

from ddlopt.instances.generators.topology import generate
from ddlopt.instances.library.topology import plans
from ddlopt.instances.workloads import JOBS, topoopt_job
from ddlopt.models.topology import TopologyInstance, TopologyProblem

DANOINT_TRAFFIC = [
    [0, 10, 7, 13, 12, 13, 6, 13],
    [14, 0, 15, 13, 12, 9, 9, 9],
    [13, 9, 0, 11, 6, 5, 11, 8],
    [7, 8, 15, 0, 7, 6, 11, 9],
    [8, 12, 12, 9, 0, 9, 14, 11],
    [5, 11, 11, 7, 9, 0, 15, 12],
    [6, 9, 7, 14, 10, 12, 0, 7],
    [11, 7, 8, 6, 10, 5, 14, 0],
]
"""Right-hand sides of the rows BAL of MIPLIB's danoint (D. Bienstock)."""


def instances() -> Iterator[TopologyProblem]:
    """All bundled instances of the family."""
    yield danoint()
    for servers in range(5, 17):
        for degree in (2, 3, 4) if servers in (8, 12, 16) else (2,):
            yield generate("all-to-all", servers=servers, degree=degree)
    for job in JOBS:
        if job != "dlrm-stress":
            yield topoopt_job(job, 12)
            yield topoopt_job(job, 12, optics="duplex", name=f"{job}-n12-d4-duplex")
        yield topoopt_job(job, 16)
        yield topoopt_job(job, 128)
    yield topoopt_job("dlrm", 16, optics="duplex", name="dlrm-n16-d4-duplex")
    yield topoopt_job("dlrm", 128, optics="duplex", name="dlrm-n128-d4-duplex")
    yield topoopt_job("dlrm", 128, degree=8)
    for seed in (1, 2, 3):
        yield generate("random", seed, servers=8, degree=2)
    yield generate("hybrid", 1, servers=8, degree=3)
    yield generate("hybrid", 1, servers=16, degree=4, group_size=4)
    yield from plans.instances()
    yield from tiny()


def danoint() -> TopologyInstance:
    """MIPLIB 3's ``danoint`` as an instance whose iteration time is the congestion."""
    return TopologyInstance.from_data(
        {
            "name": "danoint",
            "source": "MIPLIB 3, danoint (D. Bienstock): logical topology design, optimum 65.6667. The file wants "
            "every in- and out-degree equal to 2 and at most one link a pair; here a degree is at most 2",
            "servers": 8,
            "degree": 2,
            "link_bandwidth_bytes_per_s": 1.0,
            "parallel_links": False,
            "traffic_bytes": DANOINT_TRAFFIC,
        }
    )


def tiny() -> Iterator[TopologyInstance]:
    """Instances small enough for brute force that together use every feature of the family."""
    sparse4 = [[0, 6, 0, 0], [0, 0, 0, 4], [3, 0, 0, 0], [0, 5, 0, 0]]
    sparse5 = [[0, 9, 0, 0, 2], [0, 0, 0, 7, 0], [4, 0, 0, 0, 0], [0, 0, 8, 0, 0], [0, 3, 0, 0, 0]]
    whole = {"members": [0, 1, 2, 3], "gradient_bytes": 8}
    odd = {"members": [0, 1, 3], "gradient_bytes": 6}
    shapes: dict[str, dict[str, object]] = {
        "tiny-n4-d2": {"traffic_bytes": sparse4, "allreduce_groups": [whole]},
        "tiny-n4-d2-duplex": {"traffic_bytes": sparse4, "allreduce_groups": [whole], "optics": "duplex"},
        "tiny-n4-d3-direct": {"traffic_bytes": sparse4, "allreduce_groups": [whole], "host_forwarding": False},
        "tiny-n4-d3-duplex": {"traffic_bytes": sparse4, "allreduce_groups": [whole], "optics": "duplex"},
        "tiny-n5-d2": {"traffic_bytes": sparse5, "allreduce_groups": [odd], "compute_s": 10},
        "tiny-n5-d2-overlap": {"traffic_bytes": sparse5, "allreduce_groups": [odd], "compute_s": 5, "overlap": "full"},
        "tiny-n5-d2-simple": {"traffic_bytes": sparse5, "allreduce_groups": [odd], "parallel_links": False},
        "tiny-n5-d3-duplex": {"traffic_bytes": sparse5, "allreduce_groups": [odd], "optics": "duplex"},
        # Without groups and forwarding, circuits are all that is decided, as in SiP-ML.
        "tiny-n5-d3-direct": {"traffic_bytes": sparse5, "host_forwarding": False},
    }
    for name, fields in shapes.items():
        data = {
            "name": name,
            "source": "made for exact proofs; unit bandwidth",
            "servers": int(name[6]),
            "degree": int(name[9]),
            "link_bandwidth_bytes_per_s": 1.0,
        }
        yield TopologyInstance.from_data(data | fields)
