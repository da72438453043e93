"""Networks of the Internet Topology Zoo whose nodes gossip."""

from pathlib import Path
from typing import cast

from ddlopt.instances.options import checked, one_of, positive
from ddlopt.instances.readers.zoo.zoo_graph import read_zoo_file, restricted
from ddlopt.models.gossip.network import Network
from ddlopt.models.gossip.weights.instance import Goal, WeightsInstance


@checked
def read_zoo_gossip(
    path: str | Path, *, goal: str = "averaging", budget: float | None = None, name: str | None = None
) -> WeightsInstance:
    """The best weights on a network, or on its largest part where it is in several.

    Parameters
    ----------
    path : str or Path
        A file ``.gml`` or ``.graphml``.
    goal : {"averaging", "chain", "process", "pairwise"}
    budget : float, optional
        For goal ``process``; the number of nodes where none is given.
    name : str, optional
        None: that of the file.

    Raises
    ------
    InstanceError
        If the file cannot be read.
    OptionError
        If an option is out of range.
    """
    one_of("goal", goal, ("averaging", "chain", "process", "pairwise"))
    if budget is not None:
        positive("budget", budget)
    file = read_zoo_file(path)
    graph = restricted(file.graph, file.parts[0])
    told = [file.origin]
    if len(file.parts) > 1:
        told.append(f"the largest of {len(file.parts)} parts")
    if file.parallel or file.loops:
        told.append(f"{file.parallel} parallel edges merged, {file.loops} loops dropped")
    nodes = len(graph.names)
    return WeightsInstance(
        name=name or f"zoo-{Path(path).name.partition('.')[0].lower()}-{goal}",
        source="; ".join(told),
        network=Network(nodes=nodes, edges=graph.edges, names=graph.names),
        goal=cast(Goal, goal),
        budget=float(nodes) if goal == "process" and budget is None else budget,
    )
