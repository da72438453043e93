"""The jobs of TopoOpt's evaluation, with the parameters of the scripts that its authors released.

Sources: ``simulation/scripts`` and ``testbed/README.md`` of https://github.com/hipersys-team/TopoOpt.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from ddlopt.instances.workloads.networks import published as networks
from ddlopt.instances.workloads.training import GIGABIT_PER_S, Workload, training_job
from ddlopt.models.errors import UnknownNameError
from ddlopt.models.topology import TopologyInstance

_DEDICATED: dict[str, Callable[[], Workload]] = {
    "dlrm": lambda: networks.dlrm(64, 10**7, 128, 100, [2048] * 8, [4096] * 15 + [1], 128),
    "bert": lambda: networks.bert(12, 1024, 64, 16),
    "candle": lambda: networks.candle([16384] * 16, [16384] * 8 + [1], 256),
    "ncf": lambda: networks.ncf(32, 10**6, 64, 128, 100, [4096] * 7, 128),
    "resnet50": lambda: networks.resnet50(128),
    "vgg16": lambda: networks.vgg16(64),
    "dlrm-stress": lambda: networks.dlrm(128, 10**7, 128, 100, [2048] * 8, [4096] * 15 + [1], 2048),
}
"""Jobs of the dedicated 128-server cluster; ``dlrm-stress`` is the largest of its all-to-all experiments."""

_SHARED: dict[str, Callable[[], Workload]] = _DEDICATED | {
    "dlrm": lambda: networks.dlrm(16, 10**7, 256, 100, [1024] * 8, [2048] * 15 + [1], 256),
    "bert": lambda: networks.bert(6, 768, 256, 16),
    "candle": lambda: networks.candle([4096] * 12, [4096] * 8 + [1], 256),
}
"""Jobs of the shared cluster, 16 servers each; what does not run there keeps the dedicated size."""


@dataclass(frozen=True)
class Setting:
    """A cluster of TopoOpt's evaluation."""

    gpus_per_server: int
    link_gigabit_per_s: int
    jobs: dict[str, Callable[[], Workload]]
    source: str


SETTINGS = {
    12: Setting(1, 25, _SHARED, "TopoOpt's prototype, 1 A100 a server, 25 Gb/s a link; sizes of its 16-server jobs"),
    16: Setting(4, 100, _SHARED, "TopoOpt's simulation of 16-server jobs, 4 A100 a server, 100 Gb/s a link"),
    128: Setting(4, 100, _DEDICATED, "TopoOpt's simulation of 128 servers, 4 A100 a server, 100 Gb/s a link"),
}
"""By number of servers."""

JOBS = tuple(_DEDICATED)
"""Names of the jobs."""


def setting_of(servers: int) -> Setting:
    """The largest of :data:`SETTINGS` that has at most this number of servers; the prototype's below 12."""
    return SETTINGS[max((size for size in SETTINGS if size <= servers), default=min(SETTINGS))]


def topoopt_job(
    job: str, servers: int, degree: int = 4, optics: Literal["one_way", "duplex"] = "one_way", name: str = ""
) -> TopologyInstance:
    """A job of :data:`JOBS` on ``servers`` servers, as in TopoOpt's evaluation; see :func:`setting_of`."""
    if job not in JOBS:
        raise UnknownNameError(f"there is no job '{job}'; there are: {', '.join(JOBS)}")
    setting = setting_of(servers)
    return training_job(
        setting.jobs[job](),
        servers,
        degree,
        setting.link_gigabit_per_s * GIGABIT_PER_S,
        setting.gpus_per_server,
        optics,
        name=name or f"{job}-n{servers}-d{degree}",
        source=setting.source,
    )
