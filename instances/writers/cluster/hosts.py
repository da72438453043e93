"""The formats ``node-list`` and ``rank-file``: the hosts of each gang, in the order of its ranks."""

from collections.abc import Iterator

from ddlopt.instances.writers.layout import name
from ddlopt.instances.writers.words import host_names
from ddlopt.models.cluster.placement.instance import GangPlaces, PlacementInstance
from ddlopt.models.contracts import Evaluation
from ddlopt.models.errors import OptionError


def node_list(instance: PlacementInstance, solution: GangPlaces, evaluation: Evaluation) -> str:
    """A line for each gang: its name and its hosts with commas, as ``--nodelist`` of Slurm takes them."""
    lines = ["# gang: hosts in the order of ranks"]
    for gang, hosts in _hosts(instance, solution):
        lines.append(f"{name(gang)}: {','.join(hosts) if hosts else '-'}")
    return "\n".join(lines) + "\n"


def rank_file(
    instance: PlacementInstance, solution: GangPlaces, evaluation: Evaluation, gang: str | None = None
) -> str:
    """Lines ``rank N=HOST slot=0`` as Open MPI reads them, for one gang or each below its name as a comment.

    Parameters
    ----------
    gang : str, optional
        Only this one.

    Raises
    ------
    OptionError
        If there is no such gang.
    """
    names = [each.name for each in instance.gangs]
    if gang is not None and gang not in names:
        raise OptionError(f"gang is {gang!r}; there are: {', '.join(map(name, names[:20]))}")
    lines = []
    for own, hosts in _hosts(instance, solution):
        if gang in (None, own):
            lines.append(f"# {name(own)}" if hosts else f"# {name(own)} is left out")
            lines += [f"rank {rank}={host} slot=0" for rank, host in enumerate(hosts)]
    return "\n".join(lines) + "\n"


def _hosts(instance: PlacementInstance, solution: GangPlaces) -> Iterator[tuple[str, list[str]]]:
    """Each gang with its hosts, by rank; a leaf whose hosts have no names has ``LEAF-0``, ``LEAF-1`` and so on.

    Raises
    ------
    OptionError
        If one of the names is no name of a host, or is there twice.
    """
    waiting = [
        list(leaf.host_names or (f"{leaf.name}-{number}" for number in range(leaf.hosts))) for leaf in instance.leaves
    ]
    host_names([host for own in waiting for host in own], instance.free_hosts)
    for gang, runs in zip(instance.gangs, solution.places, strict=True):
        hosts = []
        for leaf, count in runs:
            hosts += waiting[leaf][:count]
            del waiting[leaf][:count]
        yield gang.name, hosts
