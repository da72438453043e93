"""What aggregation in switches saves: iteration times with and without it, for dense and for sparse gradients."""

from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from ddlopt.instances.workloads.networks.layers import BYTES_PER_NUMBER
from ddlopt.instances.workloads.sparse_batches import CRITEO_SAMPLE, ZipfModel, zipf_frequencies
from ddlopt.models.aggregation import AggregationTrees, GraphInstance, SlotsInstance

Floats = npt.NDArray[np.float64]
Route = tuple[int, ...]


def rack(workers: int, gradient_bytes: float, bandwidth_bytes_per_s: float) -> GraphInstance:
    """One switch, a job's workers and its server."""
    return GraphInstance.from_data(
        {
            "name": f"rack-n{workers}",
            "nodes": [{"name": f"host{k}", "forwards": False} for k in range(workers + 1)]
            + [{"name": "switch", "slots": 1}],
            "links": [
                {"ends": (host, workers + 1), "bandwidth_bytes_per_s": bandwidth_bytes_per_s}
                for host in range(workers + 1)
            ],
            "jobs": [{"name": "job", "workers": range(workers), "server": workers, "gradient_bytes": gradient_bytes}],
        }
    )


def servers_s(workers: int, servers: int, gradient_bytes: float, bandwidth_bytes_per_s: float) -> float:
    """One rack, the gradient in equal parts on servers of their own: their links, or the workers' where those are more.

    What they send back goes the other way at the same time.
    """
    return max(1.0, workers / servers) * gradient_bytes / bandwidth_bytes_per_s


def ring_s(workers: int, gradient_bytes: float, bandwidth_bytes_per_s: float) -> float:
    """One rack: every worker sends 2 (n - 1) / n times the gradient."""
    return 2 * (workers - 1) / workers * gradient_bytes / bandwidth_bytes_per_s


@dataclass(frozen=True)
class Touched:
    """Rows of embedding tables that batches touch, each independently of others and of other workers.

    Parameters
    ----------
    frequencies : (p,) array
        Probability that a worker's batch touches each row, the hottest first.
    row_bytes : float
        Of a row's gradient with its number.
    hot : int
        Number of rows that switches aggregate; they are the first ones.
    """

    frequencies: Floats
    row_bytes: float
    hot: int

    @property
    def worker_bytes(self) -> float:
        """What a worker sends."""
        return self.row_bytes * float(self.frequencies.sum())

    @property
    def cold_bytes(self) -> float:
        """Of these, what no switch aggregates."""
        return self.row_bytes * float(self.frequencies[self.hot :].sum())

    def merged_bytes(self, workers: int) -> float:
        """Bytes of the hot rows that at least one of ``workers`` workers has touched, as a switch sends them on."""
        return self.row_bytes * float((1 - (1 - self.frequencies[: self.hot]) ** workers).sum())


def touched(rows: int, dimension: int, hot: int, model: ZipfModel = CRITEO_SAMPLE) -> Touched:
    """Batches of click-log rows: a touched embedding row is sent as its numbers and its index."""
    frequencies = -np.sort(-zipf_frequencies(rows, model))
    return Touched(frequencies, BYTES_PER_NUMBER * (dimension + 1), hot)


def beneath(tree: Sequence[Route], server: int) -> list[int]:
    """Workers whose gradients each message of a tree carries."""
    ended: dict[int, list[int]] = {}
    for place, route in enumerate(tree):
        ended.setdefault(route[-1], []).append(place)
    found = [0] * len(tree)

    def count(place: int) -> int:
        start = tree[place][0]
        below = ended.get(start, []) if start != server else []
        found[place] = sum(map(count, below)) if below else 1
        return found[place]

    for place in ended.get(server, []):
        count(place)
    return found


def congestion_s(
    instance: GraphInstance, hot: AggregationTrees, cold: AggregationTrees, rows: Touched, dense_bytes: float = 0.0
) -> float:
    """Seconds until everything has been sent: hot rows and dense gradients along one set of trees, the rest along one.

    Parameters
    ----------
    hot, cold : AggregationTrees
        Where switches aggregate, and where none does.
    rows : Touched
        Of every worker.
    dense_bytes : float
        Gradient of the layers that all workers have, besides.
    """
    load: dict[tuple[int, int], float] = defaultdict(float)
    for job, tree, plain in zip(instance.jobs, hot.trees, cold.trees, strict=True):
        for route, workers in zip(tree, beneath(tree, job.server), strict=True):
            for arc in pairwise(route):
                load[arc] += rows.merged_bytes(workers) + dense_bytes
        for route in plain:
            for arc in pairwise(route):
                load[arc] += rows.cold_bytes
    bandwidth = {arc: instance.links[place // 2].bandwidth_bytes_per_s for place, arc in enumerate(instance.arcs)}
    return max(total / bandwidth[arc] for arc, total in load.items())


def slots_of(
    instance: GraphInstance,
    plan: AggregationTrees,
    compute_s: Sequence[float],
    *,
    slots: int,
    payload_bytes: float,
    rtt_s: float,
    goal: str = "slowest",
) -> SlotsInstance:
    """The rates that a plan's jobs can have, with the memory of switches shared: links and slots are those of the plan.

    With more slots than are ever needed, no computation and goal ``slowest`` the optimum is the plan's
    congestion.
    """
    used = [Counter(arc for route in tree for arc in pairwise(route)) for tree in plan.trees]
    arcs = sorted({arc for each in used for arc in each})
    number = {arc: place for place, arc in enumerate(arcs)}
    switches = sorted(
        {route[-1] for job, tree in zip(instance.jobs, plan.trees, strict=True) for route in tree} - _servers(instance)
    )
    place_of = {node: place for place, node in enumerate(switches)}
    bandwidth = {arc: instance.links[place // 2].bandwidth_bytes_per_s for place, arc in enumerate(instance.arcs)}
    jobs = []
    for job, tree, load, seconds in zip(instance.jobs, plan.trees, used, compute_s, strict=True):
        own = {route[-1] for route in tree} - {job.server}
        jobs.append(
            {
                "name": job.name,
                "compute_s": seconds,
                "gradient_bytes": job.gradient_bytes,
                "nic_bytes_per_s": max(bandwidth.values()),
                "rtt_s": rtt_s,
                "switches": sorted(place_of[node] for node in own),
                "links": sorted(number[arc] for arc, messages in load.items() for _ in range(messages)),
            }
        )
    names = [instance.nodes[node].name for node in switches] or ["none"]
    return SlotsInstance.from_data(
        {
            "name": f"{instance.name}-slots",
            "switches": [{"name": name, "slots": slots, "payload_bytes": payload_bytes} for name in names],
            "links": [
                {
                    "name": f"{instance.nodes[one].name} to {instance.nodes[other].name}",
                    "bandwidth_bytes_per_s": bandwidth[one, other],
                }
                for one, other in arcs
            ],
            "jobs": jobs,
            "goal": goal,
        }
    )


def _servers(instance: GraphInstance) -> set[int]:
    return {job.server for job in instance.jobs}
