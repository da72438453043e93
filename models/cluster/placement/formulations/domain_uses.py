"""Which domains each gang uses, as a mixed-integer program."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, Literal, NamedTuple

import pyomo.environ as pyo

from ddlopt.models.cluster.placement.bounds import fewest
from ddlopt.models.cluster.placement.instance import Gang, GangPlaces, PlacementInstance
from ddlopt.models.contracts import Instance
from ddlopt.models.covering import FormulationBase
from ddlopt.models.errors import SolverError
from ddlopt.models.linear import Rows, Sum, joined, term, total, weighted
from ddlopt.models.tolerances import INTEGRALITY_TOL

_MOST_VARIABLES = 200_000
"""More take longer than anybody waits."""


@dataclass(frozen=True)
class DomainUses(FormulationBase):
    r"""Hosts of each gang on each leaf, and the domains that this uses.

    Gangs that have to be within one leaf are counted by kind (hosts and weight): :math:`y_{ki}` of kind k on leaf i.
    Of the others, :math:`x_{gi}` hosts are on leaf i, :math:`u_{gd} = 1` where gang g is in domain d of a level that
    matters (one with a price, or its own), and :math:`v_{gd} = 1` where all of it is; :math:`p_g = 1` if it is placed.
    With :math:`h_d` free hosts, :math:`n_g` hosts of a gang, :math:`L_g` its level and :math:`k_{gl}` the fewest
    domains of level l that hold it:

    .. math::
        \min\ & \textstyle\sum_g w_g \sum_l c_l \sum_{d \in l} u_{gd}
          \quad\text{(pairs)},\qquad
          \sum_g w_g \sum_l c_l \sum_{d \in l} (u_{gd} - v_{gd}) \quad\text{(crossings)} \\
        & \textstyle\sum_g x_{gi} + \sum_k n_k y_{ki} \le h_i && \text{for every leaf } i \\
        & \textstyle\sum_i x_{gi} = n_g\, p_g, \qquad \sum_i y_{ki} = (\text{gangs of the kind that are placed}) \\
        & \textstyle\sum_{i \in d} x_{gi} \le \min(n_g, h_d)\, u_{gd} \\
        & \textstyle\sum_{i \in d} x_{gi} \le \min(n_g - 1, h_d)\, u_{gd} + (n_g - \min(n_g - 1, h_d))\, v_{gd},
          \quad \sum_{i \in d} x_{gi} \ge n_g v_{gd} && \text{(crossings)} \\
        & \textstyle\sum_{d \in L_g} u_{gd} \le 1, \qquad \sum_{d \in l} u_{gd} \ge k_{gl}\, p_g \\
        & u_{gd} \le p_g - \textstyle\sum_{e \in l,\, e \ne d} v_{ge} && \text{(crossings)}

    For ``max_gangs`` the weights of gangs that are placed are maximised; for ``fits`` all are placed or none,
    and p is maximised. For the others p = 1.

    Ports
    -----
    ``hosts[g, i]`` : for gangs that may be on several leaves
        x: hosts of a gang on a leaf.
    ``kind[k, i]`` : for gangs that have to be on one leaf
        y: gangs of a kind on a leaf; kinds by number, in the order of their first gangs.
    ``used[g, l, d]`` : for gangs that may be on several leaves
        u; domains by level and number.
    ``whole[g, l, d]`` : if crossings are counted
        v; domains by level and number.
    ``placed[g]``, ``placed_kind[k]`` : if the objective is ``max_gangs``
        Whether a gang is placed, and how many of a kind are.
    ``all_placed`` : if the objective is ``fits``
        Whether all gangs are placed.
    ``objective``
        As the instance has it.

    References
    ----------
    Ours.
    """

    covers: ClassVar[type[Instance]] = PlacementInstance
    sense: ClassVar[Literal["minimize", "maximize"]] = "minimize"

    def refuses(self, instance: Any) -> str | None:
        """Too many variables."""
        count = _Parts(instance).size
        if count > _MOST_VARIABLES:
            return f"it would have about {count} variables, and at most {_MOST_VARIABLES} are built; use gang-exchange"
        return None

    def build(self, block: pyo.Block, instance: PlacementInstance) -> None:
        """Fill ``block``; what is maximised is minimised with its sign changed."""
        parts = _Parts(instance)
        block.hosts = pyo.Var(parts.seats, bounds=parts.room, domain=pyo.NonNegativeIntegers, doc="hosts of a gang")
        block.kind = pyo.Var(
            parts.kind_seats, bounds=parts.kind_room, domain=pyo.NonNegativeIntegers, doc="gangs of a kind"
        )
        block.used = pyo.Var(parts.uses, domain=pyo.Binary, doc="1 if a gang is in the domain")
        whole = [key for key in parts.uses if parts.may_be_whole(*key)]
        block.whole = pyo.Var(whole, domain=pyo.Binary, doc="1 if all of a gang is in the domain")
        if instance.objective == "max_gangs":
            block.placed = pyo.Var(parts.single, domain=pyo.Binary, doc="1 if the gang is placed")
            block.placed_kind = pyo.Var(
                range(len(parts.kinds)),
                bounds=lambda _, k: (0, len(parts.kinds[k])),
                domain=pyo.NonNegativeIntegers,
                doc="gangs of a kind that are placed",
            )
        elif instance.objective == "fits":
            block.all_placed = pyo.Var(domain=pyo.Binary, doc="1 if all gangs are placed")
        _rows(block, instance, parts).add_to(
            block,
            hosts_are_free="a leaf gives no more hosts than are free",
            gang_has_its_hosts="all of them, if it is placed",
            kind_is_placed="gangs of a kind are on leaves",
            hosts_use_domains="where a gang has hosts, it uses the domain",
            gang_is_within_its_level="in one domain of it",
            gang_needs_domains="as many as hold it",
            whole_gang_is_there="all of its hosts",
            split_gang_leaves_a_host_elsewhere="a gang that is not whole in a domain has a host elsewhere",
            whole_gang_has_no_part_elsewhere="neither part nor whole in another domain",
        )
        block.objective = pyo.Expression(expr=_objective(block, instance, parts).expression)

    def start(self, block: pyo.Block, instance: PlacementInstance, solution: GangPlaces) -> None:
        """Set all variables."""
        parts = _Parts(instance)
        counts = [_counts(runs) for runs in solution.places]
        for (g, i), variable in block.hosts.items():
            variable.set_value(counts[g].get(i, 0))
        for (k, i), variable in block.kind.items():
            variable.set_value(sum(i in counts[g] for g in parts.kinds[k]))
        for (g, level, d), variable in block.used.items():
            inside = sum(count for i, count in counts[g].items() if instance.domain_of[level][i] == d)
            variable.set_value(int(inside > 0))
            if (g, level, d) in block.whole:
                block.whole[g, level, d].set_value(int(inside == instance.gangs[g].hosts))
        if instance.objective == "max_gangs":
            for g, variable in block.placed.items():
                variable.set_value(int(bool(counts[g])))
            for k, variable in block.placed_kind.items():
                variable.set_value(sum(bool(counts[g]) for g in parts.kinds[k]))
        elif instance.objective == "fits":
            done = all(counts)
            block.all_placed.set_value(int(done))
            if not done:  # all or nothing
                for variable in (
                    *block.hosts.values(),
                    *block.kind.values(),
                    *block.used.values(),
                    *block.whole.values(),
                ):
                    variable.set_value(0)

    def read(self, block: pyo.Block, instance: PlacementInstance) -> GangPlaces:
        """The places, ranks in the order of leaves by their domains.

        Raises
        ------
        SolverError
            If a number of hosts or gangs is not whole.
        """
        parts = _Parts(instance)
        counts: list[dict[int, int]] = [{} for _ in instance.gangs]
        for (g, i), variable in block.hosts.items():
            if count := _whole(f"hosts[{g}, {i}]", pyo.value(variable)):
                counts[g][i] = count
        waiting = [list(kind) for kind in parts.kinds]
        for (k, i), variable in block.kind.items():
            for _ in range(_whole(f"kind[{k}, {i}]", pyo.value(variable))):
                g = waiting[k].pop(0)
                counts[g][i] = instance.gangs[g].hosts
        places = tuple(tuple((i, each[i]) for i in sorted(each, key=instance.path)) for each in counts)
        return GangPlaces(instance=instance.name, places=places)

    def objective_value(self, instance: PlacementInstance, value: float) -> float:
        """With its sign changed where the instance maximises."""
        return value if instance.sense == "minimize" else -value


class _Parts:
    """What there are variables of.

    Parameters
    ----------
    instance : PlacementInstance
    """

    def __init__(self, instance: PlacementInstance) -> None:
        self.instance = instance
        self.last = len(instance.levels) - 1
        kinds: dict[tuple[int, int], list[int]] = {}
        for g, gang in enumerate(instance.gangs):
            if instance.level(gang) == self.last:
                kinds.setdefault((gang.hosts, gang.weight), []).append(g)
        self.kinds = list(kinds.values())
        self.single = [g for g, gang in enumerate(instance.gangs) if instance.level(gang) < self.last]

    @property
    def size(self) -> int:
        """About how many variables."""
        levels = 2 + sum(map(bool, self.instance.level_prices))
        return (levels * len(self.single) + len(self.kinds)) * len(self.instance.leaves)

    @cached_property
    def seats(self) -> list[tuple[int, int]]:
        """Single gangs and leaves that they may be on."""
        instance = self.instance
        found = []
        for g in self.single:
            level = instance.level(instance.gangs[g])
            for i, leaf in enumerate(instance.leaves):
                room = instance.domains[level][instance.domain_of[level][i]].hosts if level >= 0 else leaf.hosts
                if leaf.hosts and (level < 0 or room >= instance.gangs[g].hosts):
                    found.append((g, i))
        return found

    @cached_property
    def kind_seats(self) -> list[tuple[int, int]]:
        """Kinds of gangs within a leaf, and leaves that one of them fits on."""
        gangs, leaves = self.instance.gangs, self.instance.leaves
        return [
            (k, i)
            for k, own in enumerate(self.kinds)
            for i, leaf in enumerate(leaves)
            if gangs[own[0]].hosts <= leaf.hosts
        ]

    @cached_property
    def uses(self) -> list[tuple[int, int, int]]:
        """Single gangs and domains of levels that matter, in which they may be."""
        seen: dict[tuple[int, int, int], None] = {}
        for g, i in self.seats:
            for level in self.levels(self.instance.gangs[g]):
                seen.setdefault((g, level, self.instance.domain_of[level][i]))
        return list(seen)

    def levels(self, gang: Gang) -> list[int]:
        """Its own level, and those below that have a price."""
        own, minimised = self.instance.level(gang), self.instance.sense == "minimize"
        priced = [
            level for level, price in enumerate(self.instance.level_prices) if price and level > own and minimised
        ]
        return [own, *priced] if own >= 0 else priced

    def room(self, _: Any, g: int, i: int) -> tuple[int, int]:
        """Hosts of a gang on a leaf."""
        return 0, min(self.instance.gangs[g].hosts, self.instance.leaves[i].hosts)

    def kind_room(self, _: Any, k: int, i: int) -> tuple[int, int]:
        """Gangs of a kind on a leaf."""
        own = self.kinds[k]
        return 0, min(len(own), self.instance.leaves[i].hosts // self.instance.gangs[own[0]].hosts)

    def may_be_whole(self, g: int, level: int, d: int) -> bool:
        """Whether crossings ask for it, and the domain has the hosts."""
        instance = self.instance
        gang = instance.gangs[g]
        if instance.objective != "crossings" or level <= instance.level(gang):
            return False
        return instance.domains[level][d].hosts >= gang.hosts


class _Shares(NamedTuple):
    """Sums that stand for whether a gang, or how many of a kind, are placed."""

    gang: Callable[[int], Sum]
    kind: Callable[[int], Sum]


def _shares(block: pyo.Block, instance: PlacementInstance, parts: _Parts) -> _Shares:
    if instance.objective == "max_gangs":
        return _Shares(lambda g: term(block.placed[g]), lambda k: term(block.placed_kind[k]))
    if instance.objective == "fits":
        return _Shares(lambda _: term(block.all_placed), lambda k: len(parts.kinds[k]) * term(block.all_placed))
    return _Shares(lambda _: total([]) + 1.0, lambda k: total([]) + float(len(parts.kinds[k])))


def _rows(block: pyo.Block, instance: PlacementInstance, parts: _Parts) -> Rows:
    rows, shares = Rows(), _shares(block, instance, parts)
    on_leaf: list[list[tuple[float, Any]]] = [[] for _ in instance.leaves]
    of_gang: dict[int, list[Any]] = {g: [] for g in parts.single}
    inside: dict[tuple[int, int, int], list[Any]] = {key: [] for key in parts.uses}
    for (g, i), variable in block.hosts.items():
        on_leaf[i].append((1.0, variable))
        of_gang[g].append(variable)
        for level in parts.levels(instance.gangs[g]):
            inside[g, level, instance.domain_of[level][i]].append(variable)
    of_kind: list[list[Any]] = [[] for _ in parts.kinds]
    for (k, i), variable in block.kind.items():
        on_leaf[i].append((float(instance.gangs[parts.kinds[k][0]].hosts), variable))
        of_kind[k].append(variable)
    for i, leaf in enumerate(instance.leaves):
        if on_leaf[i]:
            rows["hosts_are_free"][i] = weighted(on_leaf[i]) <= float(leaf.hosts)
    for g, own in of_gang.items():
        rows["gang_has_its_hosts"][g] = total(own) - float(instance.gangs[g].hosts) * shares.gang(g) == 0.0
    for k, own in enumerate(of_kind):
        rows["kind_is_placed"][k] = total(own) - shares.kind(k) == 0.0
    by_level: dict[tuple[int, int], list[int]] = {}
    for (g, level, d), there in inside.items():
        by_level.setdefault((g, level), []).append(d)
        most = min(instance.gangs[g].hosts, instance.domains[level][d].hosts)
        rows["hosts_use_domains"][g, level, d] = total(there) <= float(most) * term(block.used[g, level, d])
    for (g, level), domains in by_level.items():
        gang = instance.gangs[g]
        used = total(block.used[g, level, d] for d in domains)
        if level == instance.level(gang):
            rows["gang_is_within_its_level"][g] = used <= 1.0
        if gang.hosts <= instance.largest(gang)[0]:
            rows["gang_needs_domains"][g, level] = used - float(fewest(instance, gang, level)) * shares.gang(g) >= 0.0
        whole = [d for d in domains if (g, level, d) in block.whole]
        for d in whole:
            _whole_rows(rows, block, instance, (g, level, d), total(inside[g, level, d]))
        for d in domains if whole else ():
            others = total(block.whole[g, level, e] for e in whole if e != d)
            row = term(block.used[g, level, d]) + others - shares.gang(g) <= 0.0
            rows["whole_gang_has_no_part_elsewhere"][g, level, d] = row
    return rows


def _whole_rows(
    rows: Rows, block: pyo.Block, instance: PlacementInstance, key: tuple[int, int, int], there: Sum
) -> None:
    g, level, d = key
    hosts = instance.gangs[g].hosts
    split = min(hosts - 1, instance.domains[level][d].hosts)
    whole, used = term(block.whole[key]), term(block.used[key])
    rows["whole_gang_is_there"][key] = there - float(hosts) * whole >= 0.0
    rows["split_gang_leaves_a_host_elsewhere"][key] = there - float(split) * used - float(hosts - split) * whole <= 0.0


def _objective(block: pyo.Block, instance: PlacementInstance, parts: _Parts) -> Sum:
    if instance.objective == "fits":
        return -1.0 * term(block.all_placed)
    if instance.objective == "max_gangs":
        single = ((-float(instance.gangs[g].weight), block.placed[g]) for g in parts.single)
        kinds = ((-float(instance.gangs[own[0]].weight), block.placed_kind[k]) for k, own in enumerate(parts.kinds))
        return joined([weighted(single), weighted(kinds)])
    found = []
    for (g, level, d), variable in block.used.items():
        gang = instance.gangs[g]
        price = float(gang.weight * instance.level_prices[level])
        if price and level > instance.level(gang):
            found.append((price, variable))
            if (g, level, d) in block.whole:
                found.append((-price, block.whole[g, level, d]))
    return weighted(found) + float(_settled(instance))


def _settled(instance: PlacementInstance) -> int:
    """Pairs at levels at or around the one that a gang has to be within: always one."""
    if instance.objective != "pairs":
        return 0
    return sum(
        gang.weight * price
        for gang in instance.gangs
        for level, price in enumerate(instance.level_prices)
        if level <= instance.level(gang)
    )


def _counts(runs: tuple[tuple[int, int], ...]) -> dict[int, int]:
    found: dict[int, int] = {}
    for i, count in runs:
        found[i] = found.get(i, 0) + count
    return found


def _whole(name: str, value: float) -> int:
    if abs(value - round(value)) > INTEGRALITY_TOL:
        raise SolverError(f"{name} is {value:.6g}, not a whole number")
    return round(value)
