"""One-slot instances by hand, and their solution."""

import pytest

from ddlopt.models.scheduling import Job, Network, RingTiming, SchedulingInstance, ServerGroup
from ddlopt.models.scheduling.formulations.slot_embedding.slot_embedding import SlotEmbedding
from ddlopt.solvers.contracts import Limits, Status
from ddlopt.solvers.exact import Exact

RING = RingTiming(gradient_bytes=1e8, bandwidth_bytes_per_s=1e9, forward_s_per_sample=0.1)


def slot(places="auto", **options):
    """The formulation, with all servers by themselves where that saves nothing, or always."""
    return SlotEmbedding(places=places, **options)


def solve(instance, formulation=None, **options):
    method = Exact("slot-embedding", "scheduling", formulation or slot(**options))
    result = method.solve(instance, Limits(gap=0.0))
    assert result.status is Status.OPTIMAL
    return result


def changed(instance, **fields):
    """The instance with other fields, checked again."""
    same = {name: getattr(instance, name) for name in SchedulingInstance.model_fields}
    return SchedulingInstance(**same | fields)


def close(value):
    return pytest.approx(value, rel=1e-7, abs=1e-9)


def job(name="a", most=4, least=1, wanted=1000.0, **fields):
    return Job(name=name, min_workers=least, max_workers=most, minibatches=wanted, **{"timing": RING, **fields})


def star(servers, rate):
    return Network(switches=1, links=tuple((server, servers, rate) for server in range(servers)))


def cluster(jobs, servers=2, gpus=4, network="star", **fields):
    if network == "star":
        network = star(servers, 1.5e9)
    group = ServerGroup(count=servers, capacity={"gpu": gpus}, **fields.pop("power", {}))
    return SchedulingInstance(
        name="slot", slots=1, slot_s=10.0, servers=(group,), network=network, jobs=tuple(jobs), **fields
    )
