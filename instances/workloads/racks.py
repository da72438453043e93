"""What rings of jobs send between racks, and jobs on a cluster of racks."""

from ddlopt.models.cluster.joint.instance import JointInstance
from ddlopt.models.codesign import CodesignInstance
from ddlopt.models.contracts import Instance
from ddlopt.models.deployment.step.instance import StepBlock, StepInstance


def gradient_bytes(problem: Instance) -> float:
    """Of all gradients of a network: what a plan of data parallelism alone all-reduces in a step."""
    if isinstance(problem, StepInstance):
        return problem.gradient_bytes * sum(
            block.count * _parameters(block) for block in (problem.embedding, *problem.blocks, problem.head)
        )
    assert isinstance(problem, CodesignInstance)
    found = 0.0
    # Layers without the strategy have no parameters, or tables that each server has a part of.
    for layer in problem.layers:
        whole = next((way for way in layer.strategies if way.name == "data"), None)
        found += sum(each.bytes for each in whole.reductions) if whole is not None else 0.0
    return found


def _parameters(block: StepBlock) -> float:
    way = min(block.ways, key=lambda way: way.key)
    return way.parameters * way.tensor + way.expert_parameters * way.tensor * way.expert


def crossing_bytes(gradient: float, servers: int) -> float:
    """Bytes over an uplink in each direction, for a ring over all servers that goes through rack after rack."""
    return 2 * gradient * (servers - 1) / servers


def in_racks(instance: JointInstance, hosts: int, uplink_bytes_per_s: float) -> JointInstance:
    """The same jobs on racks whose uplinks they share; a ring all-reduces all gradients of a job, rack by rack.

    Parameters
    ----------
    instance : JointInstance
        All of whose workloads have problems.
    hosts : int
        Of a rack; the servers are a multiple of it.
    uplink_bytes_per_s : float
        Of a rack, in each direction.
    """
    menus = []
    for menu in instance.workloads:
        choices = []
        for choice in menu.choices:
            assert choice.problem is not None
            sent = crossing_bytes(gradient_bytes(instance.problems[choice.problem]), choice.servers)
            choices.append(choice.model_dump() | {"crossing_bytes": sent})
        menus.append({"name": menu.name, "choices": choices})
    racks = [
        {"name": f"rack{place}", "hosts": hosts, "uplink_bytes_per_s": uplink_bytes_per_s}
        for place in range(instance.servers // hosts)
    ]
    return instance.changed(workloads=menus, fabric={"groups": racks})
