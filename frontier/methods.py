"""Methods with names of their own: the entry point ``ddlopt.methods``."""

from ddlopt.solvers.contracts import Method
from ddlopt.solvers.makers import entries


def _disjunctive(solver: str) -> Method:
    from ddlopt.frontier.deployment.plan.methods import disjunctive

    return disjunctive(solver)


ENTRIES = (
    *entries(
        "topology",
        ("branch-and-bound", "exact", "any links, routes and rings, by branching on neighbours", "branch_and_bound.branch_and_bound:BranchAndBound"),
        ("hop-enumeration", "exact", "all-to-all, also beside all-reduces of all servers, by listing links with few hops", "hop_enumeration:HopEnumeration"),
        ("circulant", "exact", "the best circulant for traffic that looks the same from every server", "frontier:formulations.circulant:CirculantDesign"),
        ("symmetric-rings", "heuristic", "Cayley graphs with all translates of rings and routes, for jobs that look the same from every server", "symmetric_rings.symmetric_rings:SymmetricRings"),
        storey="frontier",
    ),
    *entries(
        "topology/collective",
        ("tree-columns", "exact", "the linear program over trees or paths by column generation, as fractions", "columns:TreeColumns"),
        ("rings", "heuristic", "rings with the best shares, by column generation", "rings:Rings"),
        ("ring", "heuristic", "the best ring of up to nine accelerators, else one that takes little time over all its hops", "rings:Rings", {"mixture": False}),
        ("generator-rings", "heuristic", "rings of generators, as TopoOpt has them, with the best shares", "rings:Rings", {"orders": "generators"}),
        ("shifted", "exact", "trees of a few roots with the best shares, shifted to all others that look the same", "shifted:Shifted"),
        storey="frontier",
    ),
    *entries(
        "codesign",
        ("joint", "exact", "strategies by a certified bound on every topology, then topologies for the best of them, until both meet", "joint.joint:Joint"),
        ("sip-ml", "reference", "SiP-ML: circuits chosen anew by an assignment, nobody forwards", "reconfigured.reconfigured:SipMl"),
        ("ocs-reconfig", "reference", "circuit switches set anew during the iteration", "reconfigured.reconfigured:OcsReconfig"),
        storey="frontier",
    ),
    *entries(
        "scheduling",
        ("gang-search", "heuristic", "our search over orders of rigid jobs", "gangs.gang_search:GangSearch"),
        ("configurations", "exact", "column generation over slot patterns between arrivals", "configurations.configurations:ColumnGeneration"),
        ("rigid-gangs", "exact", "fixed widths in one piece: last end or times to the ends", "frontier:formulations.rigid_gangs.rigid_gangs:RigidGangs"),
        ("slot-patterns", "exact", "few jobs and servers: all patterns of speeds, contention and any network included", "frontier:formulations.slot_patterns.slot_patterns:SlotPatterns"),
        ("counted-slot", "exact", "slot-embedding with equal servers counted by what is on them", "frontier:formulations.server_patterns.counted_slot:CountedSlot"),
        ("one-piece", "exact", "few jobs in one piece: all their plans, contention and any network included", "frontier:formulations.one_piece.one_piece:OnePiece"),
        ("slot-counts", "exact", "concave utilities, any network: slots counted together, then more and more of them solved", "slot_counts.slot_counts:SlotCounts"),
        ("bandwidth-shares", "exact", "the best bandwidths for given rings (convex)", "shares.bandwidth_shares:BandwidthSharing"),
        ("fair-shares", "heuristic", "our rounding of the convex relaxation to shares of time", "shares.fair_shares:FairSharing"),
        ("job-plans", "heuristic", "column generation over plans of jobs, then sweeps", "job_plans.job_plans:JobPlans"),
        ("lp-guided", "heuristic", "sweeps over slots that begin at the linear relaxation", "lp_guided:LpGuided"),
        ("kept-runs", "heuristic", "changes cost time: widths of blocks of slots, shorter and shorter", "kept_runs:KeptRuns"),
        ("type-windows", "heuristic", "types of accelerators: a greedy that chooses them, then windows solved exactly", "type_windows:TypeWindows"),
        ("fair-deadlines", "heuristic", "finish-time fairness: a ratio is a deadline for every job", "fair_deadlines:FairDeadlines"),
        storey="frontier",
    ),
    *entries(
        "deployment/plan",
        ("brute-force", "exact", "all plans of a small instance one by one, by the fast simulator", "brute_force:BruteForce"),
        ("plan-tree", "exact", "all plans by branch and bound, under the simulator's order of work", "tree.method:PlanTree"),
        ("disjunctive-makespan", "exact", "the makespan bound of small graphs, with an order of operators on every device", _disjunctive),
        ("plan-prices", "exact", "a bound by prices of resources and paths for every deployment, and plans from them", "prices.method:PlanPrices"),
        storey="frontier",
    ),
    *entries(
        "deployment/microbatches",
        ("order-states", "exact", "lists, and a bound by dynamic programming over states of a few devices", "order_states:OrderStates"),
        storey="frontier",
    ),
    *entries(
        "deployment/pipeline",
        ("pipeline-prices", "exact", "near ideals, and a bound by prices of layers for graphs of any width", "pipeline_prices:PipelinePrices"),
        storey="frontier",
    ),
    *entries(
        "deployment/partition",
        ("device-sets", "exact", "branch and price over the sets of nodes that a device has", "device_sets.method:DeviceSets"),
        ("latency-tree", "exact", "latency by branch and bound over all sets and their order", "latency_tree:LatencyTree"),
        ("latency-sets", "exact", "latency of graphs with few ideals, by least times of parts and branch and bound over sets", "latency_sets.method:LatencySets"),
        storey="frontier",
    ),
    *entries(
        "deployment/strategies",
        ("strategy-search", "heuristic", "messages, prices of memory and small trees, with a bound", "search:StrategySearch"),
        storey="frontier",
    ),
    *entries(
        "compression",
        ("label-setting", "exact", "Pareto labels along the timeline, by dynamic programming", "timeline.label_setting.label_setting:LabelSetting"),
        storey="frontier",
    ),
    *entries(
        "aggregation/graph",
        ("rate-messages", "exact", "rates of jobs that need not merge as an integer program over messages and levels", "frontier:formulations.rate_messages:RateMessages"),
        ("graph-trees", "exact", "utilization or congestion by column generation over trees of jobs", "column_generation.trees:GraphTrees"),
        ("graph-negotiation", "heuristic", "goal congestion; ours, jobs negotiate for links and aggregators at prices that rise", "negotiation:GraphNegotiation"),
        storey="frontier",
    ),
    *entries(
        "gossip/matchings",
        ("matchings-branch-and-bound", "exact", "branch and bound, complete where matchings are given or edges take equally long", "branch_and_bound:MatchingsBranchAndBound"),
        storey="frontier",
    ),
)  # fmt: skip
