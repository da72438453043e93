"""The methods for the problem ``placement``."""

from importlib import import_module

from ddlopt.models.cluster.placement.instance import PlacementInstance
from ddlopt.solvers.backends import backend
from ddlopt.solvers.contracts import Method
from ddlopt.solvers.makers import entries, formulation, heuristic
from ddlopt.solvers.wrappers.warm_started import WarmStarted

ROOM = "cluster/placement"

_domain_uses = formulation(ROOM, "domain-uses", "formulations.domain_uses:DomainUses")
_gang_exchange = heuristic(ROOM, "gang_exchange:GangExchange")


def _unstarted(solver: str) -> Method:
    model = import_module("ddlopt.models.cluster.placement.formulations.domain_uses").DomainUses()
    made: Method = import_module("ddlopt.solvers.cluster.placement.exact").Unstarted(
        "domain-uses", "cluster", model, backend(solver)
    )
    return made


def best(instance: PlacementInstance, solver: str) -> Method:
    """``gang-exchange``, then ``domain-uses`` unless it met its bound; the search alone where the model is too large."""
    return WarmStarted("exact", "cluster", _gang_exchange(solver), lambda _: _unstarted(solver))


def milp(instance: PlacementInstance, solver: str) -> Method:
    """``domain-uses`` alone."""
    return _domain_uses(solver)


ENTRIES = entries(
    ROOM,
    ("domain-uses", "exact", "which domains each gang uses, an integer program", "models:formulations.domain_uses:DomainUses"),
    ("gang-exchange", "heuristic", "our search: some gangs give their hosts back and are placed anew", "gang_exchange:GangExchange"),
    ("kueue", "heuristic", "best fit as in Kueue's topology-aware scheduling", "rules:Kueue"),
    ("slurm-block", "heuristic", "Slurm's topology/block: base blocks, and blocks of two, four, …", "rules:SlurmBlock"),
    ("hived-cells", "heuristic", "HiveD's cells, split as late as there is a choice", "rules:HivedCells"),
)  # fmt: skip
