"""Which switches of a tree aggregate, where their number is limited."""

from functools import cached_property
from typing import Any, ClassVar, Literal, Self

from pydantic import Field, model_validator

from ddlopt.models.aggregation.family import AggregationAnswer, AggregationProblem
from ddlopt.models.contracts import Part
from ddlopt.models.errors import a_or_an

Goal = Literal["utilization", "congestion"]
LARGEST = 10**9
"""Messages that enter at a switch, and units of memory, beyond which a figure is taken for a mistake."""


class TreeJob(Part):
    """A training job whose messages all travel to the destination.

    Parameters
    ----------
    name : str
    loads : tuple of int
        Messages that enter the tree at each switch, from hosts below it.
    message_size : float
        Of every message of the job, sums included, relative to the one that ``seconds_per_message`` speaks of.
    memory : int
        What a switch that aggregates for the job needs.
    budget : int, optional
        Most switches that aggregate for the job.
    """

    name: str
    loads: tuple[int, ...]
    message_size: float = Field(default=1.0, gt=0)
    memory: int = Field(default=1, ge=1, le=LARGEST)
    budget: int | None = Field(default=None, ge=0)


class TreeInstance(AggregationProblem):
    r"""Which switches aggregate for which job.

    Switches are the nodes of a tree; above its root is the destination. With :math:`\ell_j(v)` messages of job j that
    enter at switch v, the link from v to its parent carries

    .. math::
        m_j(v) = \begin{cases} 1 & v \text{ aggregates for j and receives any} \\
        \ell_j(v) + \sum_{c\ \text{child of}\ v} m_j(c) & \text{otherwise} \end{cases}

    messages, each of which takes it :math:`g_j \rho(v)` seconds. The goals are

    *utilization*: the seconds for which links are busy, :math:`\sum_v \sum_j g_j\, \rho(v)\, m_j(v)`, are minimised;

    *congestion*: the seconds for which the busiest link is, :math:`\max_v \sum_j g_j\, \rho(v)\, m_j(v)`, are
    minimised.

    Parameters
    ----------
    parents : tuple of int or None
        The switch above each switch; None (or -1) for the root.
    seconds_per_message : tuple of float
        :math:`\rho`, of the link above each switch.
    jobs : tuple of TreeJob
        That share memory and links.
    memory : tuple of int, optional
        What each switch has for all jobs together; a switch with 0 cannot aggregate. Without, all have enough.
    budget : int, optional
        Most pairs of a job and a switch that aggregates for it.
    goal : {"utilization", "congestion"}
        The sum of link times, or the longest of them.
    names : tuple of str, optional
        Of the switches; empty: their numbers.

    References
    ----------
    R. Segal, C. Avin, G. Scalosub, "SOAR: Minimizing network utilization with bounded in-network computing", CoNEXT
    2021; the busiest link: "Constrained in-network computing with low congestion in datacenter networks", arXiv
    2201.04344. Several jobs with sizes and shared memory are ours.
    """

    kind: ClassVar[str] = "aggregation tree"

    problem: Literal["tree"] = "tree"
    parents: tuple[int | None, ...] = Field(min_length=1)
    seconds_per_message: tuple[float, ...]
    jobs: tuple[TreeJob, ...] = Field(min_length=1)
    memory: tuple[int, ...] | None = None
    budget: int | None = Field(default=None, ge=0)
    goal: Goal = "utilization"
    names: tuple[str, ...] = ()

    @model_validator(mode="before")
    @classmethod
    def _root_is_none(cls, data: Any) -> Any:
        if isinstance(data, dict) and isinstance(data.get("parents"), list | tuple):
            parents = [None if above == -1 and not isinstance(above, bool) else above for above in data["parents"]]
            return {**data, "parents": parents}
        return data

    @model_validator(mode="after")
    def _check(self) -> Self:
        self._check_lengths()
        self._check_tree()
        for place, value in enumerate(self.seconds_per_message):
            if not value > 0:
                raise ValueError(
                    f"seconds_per_message[{place}] is {value:g}; every link takes some time, give more than 0"
                )
        for place, room in enumerate(self.memory or ()):
            if not 0 <= room <= LARGEST:
                raise ValueError(f"memory[{place}] is {room}; expected 0 (it cannot aggregate) to {LARGEST}")
        for place, job in enumerate(self.jobs):
            for node, load in enumerate(job.loads):
                if not 0 <= load <= LARGEST:
                    raise ValueError(f"jobs[{place}].loads[{node}] is {load}; expected 0 to {LARGEST} messages")
            if not any(job.loads):
                raise ValueError(f"jobs[{place}] ('{job.name}') has no messages; all its loads are 0, remove it")
        return self

    @property
    def size(self) -> int:
        """Number of switches."""
        return len(self.parents)

    @cached_property
    def order(self) -> tuple[int, ...]:
        """All switches, each after its parent."""
        found = [self.parents.index(None)]
        for node in found:
            found += self.children[node]
        return tuple(found)

    @cached_property
    def children(self) -> tuple[tuple[int, ...], ...]:
        """Switches right below each switch, ascending."""
        found: list[list[int]] = [[] for _ in self.parents]
        for node, above in enumerate(self.parents):
            if above is not None:
                found[above].append(node)
        return tuple(map(tuple, found))

    def label(self, node: int) -> str:
        """Number and name of a switch, for messages."""
        return f"{node} ('{self.names[node]}')" if self.names else str(node)

    def room(self, node: int) -> int | None:
        """Memory of a switch; None where it is enough for all."""
        return None if self.memory is None else self.memory[node]

    def may_aggregate(self, job: int, node: int) -> bool:
        """Whether a switch has memory for a job, were it alone."""
        return self.memory is None or self.memory[node] >= self.jobs[job].memory

    def _check_lengths(self) -> None:
        count = len(self.parents)
        given = [("seconds_per_message", len(self.seconds_per_message))]
        given += [(f"jobs[{place}].loads", len(job.loads)) for place, job in enumerate(self.jobs)]
        given += [("memory", count if self.memory is None else len(self.memory)), ("names", len(self.names) or count)]
        for name, length in given:
            if length != count:
                raise ValueError(f"{name} has {length} entries, but there are {count} switches; give one for each")

    def _check_tree(self) -> None:
        count = len(self.parents)
        for node, above in enumerate(self.parents):
            if above is not None and not 0 <= above < count:
                raise ValueError(f"parents[{node}] is {above}, but there are {count} switches (0..{count - 1})")
        self._check_cycles()
        roots = [node for node, above in enumerate(self.parents) if above is None]
        if len(roots) > 1:
            raise ValueError(
                f"parents[{roots[0]}] and parents[{roots[1]}] are both None, but only one switch is next to the "
                "destination; give the other one a parent"
            )

    def _check_cycles(self) -> None:
        seen = [0] * len(self.parents)
        for first in range(len(self.parents)):
            node: int | None = first
            while node is not None and not seen[node]:
                seen[node] = first + 1
                node = self.parents[node]
            if node is None or seen[node] != first + 1:
                continue
            cycle, after = [node], self.parents[node]
            while after is not None and after != node:
                cycle.append(after)
                after = self.parents[after]
            shown = [self.label(each) for each in [*cycle[:8], *(cycle[-1:] if len(cycle) > 8 else []), node]]
            if len(cycle) > 8:
                shown.insert(8, "…")
            raise ValueError(
                f"parents form a cycle of {len(cycle)} switches: {' -> '.join(shown)}; exactly one switch has parent "
                "None, and all others lead to it"
            )


class AggregatingSwitches(AggregationAnswer):
    """The switches that aggregate for each job.

    Parameters
    ----------
    switches : tuple of tuples of int
        Of each job, each once.
    """

    kind: ClassVar[str] = "set of aggregating switches"

    problem: Literal["tree"] = "tree"
    switches: tuple[tuple[int, ...], ...]


def refusal(instance: Any, goal: Goal | None = None) -> str | None:
    """Why an instance is no tree, or not one with this goal; None if it is."""
    if not isinstance(instance, TreeInstance):
        return f"it places aggregation in trees, and this is {a_or_an(instance.kind)}"
    if goal is not None and instance.goal != goal:
        return f"it minimises {goal}, and the goal of the instance is {instance.goal}"
    return None
