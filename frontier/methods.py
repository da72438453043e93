"""Methods with names of their own: the entry point ``ddlopt.methods``."""

from ddlopt.solvers.makers import entries

ENTRIES = (
    *entries(
        "deployment/plan",
        ("plan-tree", "exact", "all plans by branch and bound, under the simulator's order of work", "tree.method:PlanTree"),
        ("plan-prices", "exact", "a bound by prices of resources and paths for every deployment, and plans from them", "prices.method:PlanPrices"),
        ("local-branching", "heuristic", "our neighbourhoods of a plan by the makespan bound; with its bound", "local_branching:LocalBranching"),
        storey="frontier",
    ),
    *entries(
        "deployment/partition",
        ("device-sets", "exact", "branch and price over the sets of nodes that a device has", "device_sets.method:DeviceSets"),
        ("latency-tree", "exact", "latency by branch and bound over all sets and their order", "latency_tree:LatencyTree"),
        storey="frontier",
    ),
)  # fmt: skip
