"""What the fields of instances and answers are, so that a walk can rename, reorder, scale and shift any of them.

A line of :data:`INSTANCES`, or of :data:`~.answers.ANSWERS`, has the path of a field, with ``*`` for every place of a
list, and its role:

==========  ============================================================================================
``[X]``     a list with an entry for each X, which may come in another order; it tells how many there are
``#X``      how many X there are; several lines count one after the other
``X``       the number of an X; ``X of {0}`` is one of the first list's entry, as there are such lists for each entry
``{}``      a list in any order; ``{<}`` one that has to ascend
``<>``      a list whose first two entries, the ends of something, ascend
``~``       a list in any order whose places answers name: they are not translated then
``'W``      a text of class W, the same everywhere; each ``name`` has a class of its own
``keys W``  an object whose keys are texts of class W
``= U``     a figure with the unit U, as ``B/s``; the end of a field's name tells it otherwise (``_bytes``, ``_s``)
``@ U``     a point on a clock that all share: it may be shifted
``as P``    an instance of, or an answer to, the problem P
==========  ============================================================================================
"""

from collections.abc import Mapping

_NETWORK = """
network.nodes #node
network.names [node]
network.names.* 'node
network.edges [edge]
network.edges.*.0 node
network.edges.*.1 node
"""
_TIMELINE = """
menus [menu]
gradients.*.menu menu
menus.* ~
menus.*.*.label 'label
menus.*.*.error = E
error_budget = E
menus.*.*.stages.*.lane 'lane
lanes.* 'lane
cluster.intra_bandwidth_bytes_per_s = 1/s
cluster.inter_bandwidth_bytes_per_s = 1/s
largest_bucket_bytes = 1
"""

INSTANCES: dict[str, str] = {
    "topology": """
        servers #server
        allreduce_groups [group]
        allreduce_groups.*.members {<}
        allreduce_groups.*.members.* server
        traffic_bytes [server]
        traffic_bytes.* [server]
        traffic_bytes.*.* = B
    """,
    "topology/collective": """
        accelerators #node
        switches #node
        links {}
        links.*.source node
        links.*.target node
        root node
    """,
    "scheduling": """
        servers [server]
        network.switches #server
        network.links {}
        network.links.*.0 server
        network.links.*.1 server
        network.links.*.2 = B/s
        slots @ slot
        jobs [job]
        jobs.*.arrival @ slot
        jobs.*.deadline @ slot
        servers.*.capacity keys resource
        jobs.*.demand keys resource
        servers.*.capacity.* = Q
        jobs.*.demand.* = Q
        jobs.*.utility.value = V
        energy_price_per_j = V
        servers.*.type 'type
        jobs.*.speeds keys type
        servers.*.idle_w = 1/s
        servers.*.worker_w = 1/s
    """,
    "compression/sfb": """
        operators [operator]
        operators.*.memory_bytes = M
        memory_budget_bytes = M
        tensors {}
        tensors.*.producer operator
        tensors.*.consumers {}
        tensors.*.consumers.* operator
    """,
    "compression/timeline": _TIMELINE,
    "compression/levels": """
        gradients.*.curve.errors.* = E
        gradients.*.curve.scale = E
        error_budget = E
    """,
    "compression/forward": "timeline as compression/timeline\nforward_s.* = s",
    "codesign": """
        servers #server
        layouts [layout]
        layouts.*.servers.* server
        group_sets [groupset]
        group_sets.* ~
        group_sets.*.* {<}
        group_sets.*.*.* server
        layers [layer]
        layers.*.strategies {}
        layers.*.strategies.*.reads layout
        layers.*.strategies.*.writes layout
        layers.*.strategies.*.name 'strategy
        layers.*.strategies.*.reductions {}
        layers.*.strategies.*.reductions.*.groups groupset
        layers.*.strategies.*.traffic {}
        layers.*.strategies.*.traffic.*.0 server
        layers.*.strategies.*.traffic.*.1 server
        layers.*.strategies.*.traffic.*.2 = B
        layers.*.strategies.*.moved_bytes = V
        device.memory_bytes_per_s = V/s
        layers.*.strategies.*.memory_bytes = M
        device.memory_bytes = M
        layers.*.strategies.*.error = E
        error_budget = E
        edges {}
        edges.*.0 layer
        edges.*.1 layer
    """,
    "deployment/plan": """
        operators.*.group group
        operators.*.times_s keys type
        operators.*.times_s.*.* = s
        device_groups [device group]
        device_groups.*.type 'type
        bandwidth_bytes_per_s [device group]
        bandwidth_bytes_per_s.* [device group]
        bandwidth_bytes_per_s.*.* = B/s
        all_reduce.s_per_byte [line]
        all_reduce.fixed_s [line]
        all_reduce.s_per_byte.* = s/B
        all_reduce.fixed_s.* = s
    """,
    "deployment/partition": """
        accelerators #device
        nodes [node]
        edges {}
        edges.*.0 node
        edges.*.1 node
    """,
    "deployment/strategies": """
        costs [node]
        costs.*.* = C
        usages [node]
        usages.*.* = U
        usage_limit = U
        intervals [node]
        intervals.*.* @ step
        edges [edge]
        edges.*.* node
        table_of [edge]
        table_of.* table
        tables [table]
        tables.*.* = C
        pins {}
        pins.*.0 node
        aliases {}
        aliases.* {}
        aliases.*.* node
    """,
    "deployment/pipeline": """
        layers [layer]
        layers.*.menus.*.options {}
        layers.*.menus.*.options.*.name 'option
        layers.*.menus.*.options.*.gathered {}
        layers.*.menus.*.options.*.scattered {}
        layers.*.menus.*.options.*.gathered.*.0 layer
        layers.*.menus.*.options.*.scattered.*.0 layer
        layers.*.menus.*.options.*.gathered.*.1 = B
        layers.*.menus.*.options.*.scattered.*.1 = B
        layers.*.menus.*.options.*.kept_bytes = M
        layers.*.menus.*.options.*.fixed_bytes = M
        memory_bytes = M
        edges {}
        edges.*.maker layer
        edges.*.user layer
    """,
    "deployment/microbatches": """
        chunks [chunk]
        chunks.*.device device
        memory_bytes [device]
        memory_bytes.* = B
        optimizer_s [device]
        optimizer_s.* = s
        edges {}
        edges.*.maker chunk
        edges.*.user chunk
    """,
    "deployment/step": """
        weight_bytes = B/P
        gradient_bytes = B/P
        optimizer_bytes = B/P
        optimizer_s = s/P
        blocks.*.ways.*.parameters = P
        blocks.*.ways.*.expert_parameters = P
        embedding.ways.*.parameters = P
        embedding.ways.*.expert_parameters = P
        head.ways.*.parameters = P
        head.ways.*.expert_parameters = P
        blocks.*.ways {}
        embedding.ways {}
        head.ways {}
        embedding.ways.*.options {}
        head.ways.*.options {}
        orders {}
        blocks.*.ways.*.options.*.name 'option
        embedding.ways.*.options.*.name 'option
        head.ways.*.options.*.name 'option
    """,
    "aggregation/hot": """
        jobs [job]
        jobs.*.frequencies [parameter of {0}]
        jobs.*.registers [parameter of {0}]
        jobs.*.saved_messages [parameter of {0}]
        jobs.*.labels [parameter of {0}]
        jobs.*.labels.* 'label
        jobs.*.iterations_per_s = R
        switches [switch]
        switches.*.workers [job]
    """,
    "aggregation/registers": """
        parameters #parameter
        labels [parameter]
        labels.* 'label
        arrays #array
        capacity [array]
        batches [batch]
        batches.* {}
        batches.*.* parameter
        weights [batch]
        weights.* = W
        held_out {}
        held_out.* {}
        held_out.*.* parameter
    """,
    "aggregation/tree": """
        parents [node]
        parents.* node
        seconds_per_message [node]
        seconds_per_message.* = s
        jobs [job]
        jobs.*.loads [node]
        jobs.*.message_size = B
        memory [node]
        names [node]
        names.* 'node
    """,
    "aggregation/graph": """
        nodes [node]
        links {}
        links.*.ends {}
        links.*.ends.0 node
        links.*.ends.1 node
        jobs [job]
        jobs.*.workers {}
        jobs.*.workers.* node
        jobs.*.server node
    """,
    "aggregation/slots": """
        switches [switch]
        links [link]
        jobs [job]
        jobs.*.switches [stop of {0}]
        jobs.*.delivery.workers [stop of {0}]
        jobs.*.delivery.delays_s [delay of {0}]
        jobs.*.delivery.chances [delay of {0}]
        jobs.*.switches.* switch
        jobs.*.links {}
        jobs.*.links.* link
        jobs.*.weight = W
        jobs.*.iterations = I
        jobs.*.delivery.delays_s.* = s
        jobs.*.stay.begins_s @ s
        jobs.*.stay.ends_s @ s
    """,
    "aggregation/table": """
        tables [table]
        tables.*.weight = W
        tables.*.entry_bytes = NB
        budget_bytes = NB
    """,
    "gossip/weights": _NETWORK + "costs [edge]\ncosts.* = C\nbudget = C",
    "gossip/matchings": _NETWORK
    + """
        times [edge]
        times.* = s
        budget = s
        edge_budgets [edge]
        matchings [matching]
        matchings.* {}
        matchings.*.* edge
    """,
    "gossip/period": "\n".join(f"rounds.{line.strip()}" for line in _NETWORK.strip().splitlines())
    + """
        rounds.matchings [matching]
        rounds.matchings.* {}
        rounds.matchings.*.* edge
        rounds.times_s [matching]
        rounds.times_s.* = s
        stragglers.factors {}
        target = G
        variance = G
        initial_gap = D
        smoothness = G/D
        step_size = D/G
    """,
    "gossip/exchange": "points.*.* = P\nsend_cost = P*P",
    "gossip/exchange plain": "points.*.* = P\nsend_cost = P",
    "gossip/circulant": "",
    "cluster/placement": """
        leaves [leaf]
        leaves.*.host_names.* 'host
        leaves.*.name 'domain
        leaves.*.inside.* 'domain
        gangs [gang]
        gangs.*.weight = NW
        gangs.*.within 'level
        levels.* 'level
        prices.* = NC
    """,
    "cluster/jobs": """
        jobs [job]
        jobs.*.arrival_s @ s
        jobs.*.deadline_s @ s
        jobs.*.weight = W
        jobs.*.iterations = I
        jobs.*.step_s.* = s/I
        jobs.*.least_s.* = s/I
    """,
    "cluster/joint": """
        problems.* as *
        workloads [workload]
        workloads.*.choices.*.problem problem
        problems [problem]
        jobs [job]
        jobs.*.workload workload
        jobs.*.arrival_s @ s
        jobs.*.deadline_s @ s
        jobs.*.weight = W
        fabric.groups [place]
        fabric.groups.*.inside place
    """,
}
OBJECTIVES: dict[str, str | tuple[str, Mapping[str, str]]] = {
    "scheduling": ("objective", {"utility": "V", "completion": "V*s", "max_min": "1", "finish_time_fairness": "1"}),
    "compression/timeline": ("goal", {"error": "E"}),
    "compression/levels": ("goal", {"error": "E"}),
    "deployment/strategies": "C",
    "aggregation/hot": "R",
    "aggregation/registers": "W",
    "aggregation/tree": "s*B",
    "aggregation/graph": ("goal", {"rates": "B/s"}),
    "aggregation/slots": "W*I*s",
    "aggregation/table": "W",
    "gossip/weights": "1",
    "gossip/matchings": "1",
    "gossip/exchange": ("norm", {"squared": "P*P", "plain": "P"}),
    "gossip/circulant": "1",
    "cluster/placement": ("objective", {"pairs": "NC*NW", "crossings": "NC*NW", "max_gangs": "NW", "fits": "1"}),
    "cluster/jobs": ("objective", {"weighted_completion": "W*s", "weighted_tardiness": "W*s"}),
    "cluster/joint": ("objective", {"weighted_completion": "W*s", "weighted_tardiness": "W*s"}),
}
"""The unit of the objective, or of which field's word it depends: seconds where nothing is said."""
