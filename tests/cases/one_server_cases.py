"""Jobs on one server with slots of a second, and what a heuristic makes of them."""

from ddlopt.models.scheduling import Job, RingTiming, SchedulingInstance, ServerGroup, evaluate
from ddlopt.solvers.contracts import Limits
from ddlopt.solvers.heuristic import Clock

LINEAR = RingTiming(gradient_bytes=0, bandwidth_bytes_per_s=1, forward_s_per_sample=1.0)
RING = RingTiming(gradient_bytes=1, bandwidth_bytes_per_s=1, forward_s_per_sample=1.0)


def job(name, workers, minibatches, **more):
    return Job(name=name, **{"max_workers": workers, "timing": LINEAR, "minibatches": minibatches, **more})


def cluster(jobs, slots, gpus=2, **more):
    servers = (ServerGroup(capacity={"gpu": float(gpus)}),)
    return SchedulingInstance(name="few", slots=slots, slot_s=1.0, servers=servers, jobs=tuple(jobs), **more)


def answered(method, instance, seed=0):
    """Objective, schedule and details of an answer that holds."""
    schedule, details = method.answer(instance, seed, Clock(Limits(), None), None)
    found = evaluate(instance, schedule)
    assert not found.violations
    return float(found.objective), schedule, details
