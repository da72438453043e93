"""Gangs that need hosts in a hierarchy of racks and blocks."""

from functools import cached_property
from typing import Annotated, ClassVar, Literal, NamedTuple, Self

from pydantic import Field, model_validator

from ddlopt.models.cluster.family import ClusterAnswer, ClusterProblem
from ddlopt.models.contracts import Part, Sense
from ddlopt.models.sizes import require_memory

Goal = Literal["pairs", "crossings", "max_gangs", "fits"]
ANYWHERE = "any"
"""A gang that may be spread over everything."""
MOST_HOSTS, MOST_PRICE = 1_000_000, 1000
"""What is larger is a slip of the pen."""

Price = Annotated[int, Field(ge=0, le=MOST_PRICE)]


class Leaf(Part):
    """A domain of the innermost level, with the hosts that are free there.

    Parameters
    ----------
    name : str
    inside : tuple of str
        Names of the domains around it, from the outermost level on: one for each level but the innermost.
    hosts : int
        That are free.
    host_names : tuple of str
        Of the free hosts, for writers; empty where nobody asks.
    """

    name: str = Field(min_length=1)
    inside: tuple[str, ...] = ()
    hosts: int = Field(ge=0, le=MOST_HOSTS)
    host_names: tuple[str, ...] = ()


class Gang(Part):
    """Pods (ranks of a job) that start together, each on a host of its own.

    Parameters
    ----------
    name : str
    hosts : int
    within : str
        The level in one domain of which all of them must be; ``"any"`` for no such level.
    weight : int
        Times which it counts in the objective.
    """

    name: str = Field(min_length=1)
    hosts: int = Field(ge=1, le=MOST_HOSTS)
    within: str = ANYWHERE
    weight: int = Field(default=1, ge=1, le=MOST_PRICE)


class Domain(NamedTuple):
    """A domain of some level: its name, the leaves inside, their free hosts, and the domain around it (or -1)."""

    name: str
    leaves: tuple[int, ...]
    hosts: int
    parent: int


class PlacementInstance(ClusterProblem):
    r"""Which hosts each gang gets, and the order of its ranks.

    Levels nest: a block has racks, a rack has hosts. A gang g of :math:`n_g` pods gets :math:`n_g` hosts, all inside
    one domain of the level that it names, or anywhere; its ranks form a ring in an order that is decided as well. A
    leaf gives no more hosts than it has free. With :math:`c_l` the price of level l, :math:`w_g` the gang's weight and
    :math:`D_{gl}` the domains of level l in which gang g is:

    * ``pairs``: minimise :math:`\sum_g w_g \sum_l c_l |D_{gl}|`, the pairs of a gang and a domain in which it is;
    * ``crossings``: minimise :math:`\sum_g w_g \sum_l c_l` · (neighbours in g's ring that are in different domains of
      level l). A ring over k domains has at least k of them (none for k = 1), and ranks ordered by block, then rack,
      have k at every level at once;
    * ``max_gangs``: maximise :math:`\sum w_g` over the gangs that are placed; others are left out;
    * ``fits``: 1 if all gangs are placed, 0 otherwise.

    Parameters
    ----------
    levels : tuple of str
        Their names, the outermost first; the last is that of the leaves.
    leaves : tuple of Leaf
    gangs : tuple of Gang
    objective : {"pairs", "crossings", "max_gangs", "fits"}
    prices : tuple of int
        Of each level, for pairs and crossings; empty: 1 for the innermost, 0 for the others.
    """

    kind: ClassVar[str] = "placement instance"

    problem: Literal["placement"] = "placement"
    levels: tuple[str, ...] = Field(default=("rack",), min_length=1, max_length=16)
    leaves: tuple[Leaf, ...] = Field(min_length=1)
    gangs: tuple[Gang, ...] = Field(min_length=1)
    objective: Goal = "pairs"
    prices: tuple[Price, ...] = ()

    @model_validator(mode="after")
    def _check(self) -> Self:
        require_memory(
            f"{len(self.gangs)} gangs on {len(self.leaves)} leaves", 64.0 * len(self.gangs) * len(self.leaves)
        )
        for what, names in (
            ("levels", list(self.levels)),
            ("leaves", [leaf.name for leaf in self.leaves]),
            ("gangs", [gang.name for gang in self.gangs]),
        ):
            seen: dict[str, int] = {}
            for place, name in enumerate(names):
                if seen.setdefault(name, place) != place:
                    raise ValueError(f"{what}[{place}] is named '{name}', like {what}[{seen[name]}]; names must differ")
        if ANYWHERE in self.levels:
            raise ValueError(f"a level is named '{ANYWHERE}', which says that a gang may be anywhere")
        if self.prices and len(self.prices) != len(self.levels):
            raise ValueError(f"prices has {len(self.prices)} entries, and there are {len(self.levels)} levels")
        if self.prices and not any(self.prices):
            raise ValueError("prices are all 0; give one level a price")
        self._check_leaves()
        for place, gang in enumerate(self.gangs):
            self._check_gang(place, gang)
        return self

    def _check_leaves(self) -> None:
        around = len(self.levels) - 1
        parents: dict[tuple[int, str], tuple[str, int]] = {}
        for place, leaf in enumerate(self.leaves):
            where = f"leaves[{place}] ('{leaf.name}')"
            if len(leaf.inside) != around:
                above = ", ".join(self.levels[:-1]) or "none"
                raise ValueError(
                    f"{where}: inside has {len(leaf.inside)} names, and there are {around} levels around it: {above}"
                )
            if leaf.host_names and len(leaf.host_names) != leaf.hosts:
                raise ValueError(f"{where}: {len(leaf.host_names)} host_names for {leaf.hosts} hosts")
            for level in range(1, around):
                name, parent = leaf.inside[level], leaf.inside[level - 1]
                other, first = parents.setdefault((level, name), (parent, place))
                if other != parent:
                    raise ValueError(
                        f"level '{self.levels[level]}' does not nest: '{name}' is in {self.levels[level - 1]} "
                        f"'{other}' (leaves[{first}]) and in '{parent}' (leaves[{place}]); give them other names"
                    )
        hosts: dict[str, str] = {}
        for leaf in self.leaves:
            for name in leaf.host_names:
                if name in hosts:
                    raise ValueError(
                        f"host '{name}' is in {self.levels[-1]} '{hosts[name]}' and in '{leaf.name}'; list it once"
                    )
                hosts[name] = leaf.name

    def _check_gang(self, place: int, gang: Gang) -> None:
        where = f"gangs[{place}] ('{gang.name}')"
        if gang.within != ANYWHERE and gang.within not in self.levels:
            levels = ", ".join((ANYWHERE, *self.levels))
            raise ValueError(f"{where}: within is '{gang.within}'; levels are: {levels}")
        if self.objective in ("pairs", "crossings"):
            room, name = self.largest(gang)
            if gang.hosts > room:
                one = (
                    "all leaves together have"
                    if gang.within == ANYWHERE
                    else f"the largest {gang.within}, '{name}', has"
                )
                raise ValueError(
                    f"{where} fits nowhere: it needs {gang.hosts} hosts, and {one} {room} free; leave it out, or "
                    "maximise max_gangs"
                )

    @property
    def size(self) -> int:
        """Number of gangs."""
        return len(self.gangs)

    @property
    def free_hosts(self) -> int:
        """In all leaves."""
        return sum(leaf.hosts for leaf in self.leaves)

    @property
    def sense(self) -> Sense:
        """Pairs and crossings are minimised, gangs that are placed maximised."""
        return "minimize" if self.objective in ("pairs", "crossings") else "maximize"

    @property
    def objective_unit(self) -> str:
        """A count."""
        return ""

    @cached_property
    def level_prices(self) -> tuple[int, ...]:
        """Of each level, as said or by default."""
        return self.prices or (*(0 for _ in self.levels[:-1]), 1)

    @cached_property
    def domains(self) -> tuple[tuple[Domain, ...], ...]:
        """Of each level, in the order of their first leaves."""
        found: list[tuple[Domain, ...]] = []
        for level in range(len(self.levels)):
            members: dict[str, list[int]] = {}
            for place in range(len(self.leaves)):
                members.setdefault(self._name(place, level), []).append(place)
            above = {name: place for place, (name, *_) in enumerate(found[-1])} if found else {}
            found.append(
                tuple(
                    Domain(
                        name,
                        tuple(leaves),
                        sum(self.leaves[leaf].hosts for leaf in leaves),
                        above[self._name(leaves[0], level - 1)] if level else -1,
                    )
                    for name, leaves in members.items()
                )
            )
        return tuple(found)

    @cached_property
    def domain_of(self) -> tuple[tuple[int, ...], ...]:
        """Of each level, the domain of each leaf."""
        found = []
        for domains in self.domains:
            own = [0] * len(self.leaves)
            for place, domain in enumerate(domains):
                for leaf in domain.leaves:
                    own[leaf] = place
            found.append(tuple(own))
        return tuple(found)

    def level(self, gang: Gang) -> int:
        """Number of the level within which a gang has to be; -1 for none."""
        return -1 if gang.within == ANYWHERE else self.levels.index(gang.within)

    def path(self, leaf: int) -> tuple[int, ...]:
        """Numbers of the domains around a leaf, the outermost first: ranks are in its order at every level."""
        return tuple(own[leaf] for own in self.domain_of)

    def largest(self, gang: Gang) -> tuple[int, str]:
        """Free hosts, and name, of the largest domain in which a gang may be."""
        if gang.within == ANYWHERE:
            return self.free_hosts, ""
        domains = self.domains[self.level(gang)]
        best = max(domains, key=lambda domain: domain.hosts)
        return best.hosts, best.name

    def _name(self, leaf: int, level: int) -> str:
        return self.leaves[leaf].name if level == len(self.levels) - 1 else self.leaves[leaf].inside[level]


Count = Annotated[int, Field(ge=0)]


class GangPlaces(ClusterAnswer):
    """The hosts of each gang, in the order of its ranks.

    Parameters
    ----------
    places : tuple of tuple of (int, int)
        For each gang runs of ranks one after the other: the leaf, and how many ranks are there. A leaf may occur again.
        Empty for a gang that is left out.
    """

    kind: ClassVar[str] = "places of gangs"

    problem: Literal["placement"] = "placement"
    places: tuple[tuple[tuple[Count, Count], ...], ...]
