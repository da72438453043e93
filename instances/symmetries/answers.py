"""What the fields of answers are, in the words of :mod:`.shapes`."""

_DESIGN = """
links {}
links.*.0 server
links.*.1 server
planes.*.*.0 server
planes.*.*.1 server
rings.*.group group
rings.*.members.* server
rings.*.paths.*.* server
routes.*.source server
routes.*.target server
routes.*.paths.*.* server
"""
_DUPLEX = _DESIGN + "links.* <>\nplanes.*.* <>\n"


def _within(design: str) -> str:
    """Lines of a co-design, whose rings name groups of a job that the strategies make."""
    lines = [f"design.{line}" for line in design.strip().splitlines() if " group" not in line]
    return "\n".join(["strategies [layer]", "strategies.* 'strategy", *lines])


ANSWERS: dict[str, str] = {
    "topology": _DESIGN,
    "topology duplex": _DUPLEX,
    "topology/collective": """
        trees {}
        trees.*.root node
        trees.*.gather {}
        trees.*.gather.*.* node
        trees.*.spread {}
        trees.*.spread.*.* node
    """,
    "scheduling": """
        runs {}
        runs.*.job job
        runs.*.start @ slot
        runs.*.workers {}
        runs.*.workers.*.0 server
        runs.*.ring.* server
    """,
    "compression/sfb": "duplicated {<}\nduplicated.* operator",
    "compression/timeline": "options.* 'label\ngradients.* 'gradients.*.name",
    "compression/levels": "",
    "compression/forward": "",
    "codesign": _within(_DESIGN),
    "codesign duplex": _within(_DUPLEX),
    "deployment/plan": """
        groups [group]
        groups.*.device_groups {<}
        groups.*.device_groups.* device group
        groups.*.devices.* device
    """,
    "deployment/partition": "devices [node]\ndevices.* device\nsubgraphs [node]",
    "deployment/strategies": "strategies [node]",
    "deployment/pipeline": "stages.*.layers.* layer\nstages.*.options.* 'option",
    "deployment/microbatches": "orders [device]\norders.*.* pass",
    "deployment/step": "option 'option",
    "aggregation/hot": "placed [switch]\nplaced.* [job]\nplaced.*.*.* parameter of {1}",
    "aggregation/registers": "arrays [parameter]\narrays.* array",
    "aggregation/tree": "switches [job]\nswitches.* {}\nswitches.*.* node",
    "aggregation/graph": "trees [job]\ntrees.* {}\ntrees.*.*.* node",
    "aggregation/slots": "slots [job]\nslots.* [stop of {0}]\nrates_bytes_per_s [job]\nrates_bytes_per_s.* = B/s",
    "aggregation/table": "starts [table]\nvalues [table]",
    "gossip/weights": "weights [edge]\nmatrix [node]\nmatrix.* [node]",
    "gossip/matchings": """
        matchings [matching]
        matchings.* {}
        matchings.*.* edge
        probabilities [matching]
        weights [edge]
    """,
    "gossip/period": "step_size = D/G\nactivation [matching]",
    "gossip/exchange": "",
    "gossip/circulant": "",
    "cluster/placement": "places [gang]\nplaces.*.*.0 leaf",
    "cluster/jobs": "runs [job]\nruns.*.*.start @ s",
    "cluster/jobs slots": "runs [job]\nruns.*.*.start @ slot",
    "cluster/joint": """
        runs [job]
        runs.*.start @ s
        runs.*.places {}
        runs.*.places.*.0 place
        plans {}
        plans.*.workload workload
        plans.*.answer as *
    """,
}
