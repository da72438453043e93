"""A choice of strategies with what is known of it."""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np

from ddlopt.frontier.codesign.joint.master import Choices
from ddlopt.frontier.codesign.joint.topology import Answer, first_answer, next_kind
from ddlopt.models.codesign.demand import demand_of
from ddlopt.models.codesign.evaluate import evaluate
from ddlopt.models.codesign.formulations.rows.congestion_cuts import most_bytes
from ddlopt.models.codesign.instance import CodesignInstance
from ddlopt.models.codesign.job import job_of
from ddlopt.models.codesign.solution import CodesignPlan
from ddlopt.models.codesign.tables import tables_of
from ddlopt.models.tolerances import IMPROVEMENT_TOL
from ddlopt.models.topology import TopologyDesign, TopologyInstance

_DIGITS = 9
"""Of bytes and compute time: candidates that agree in these are the same."""


@dataclass
class Candidate:
    """A choice of strategies, the job that it leaves, and the best design known for it."""

    instance: CodesignInstance
    choices: Choices
    job: TopologyInstance | None
    compute_s: float
    least_bytes: float
    answer: Answer

    @property
    def time_s(self) -> float:
        """Iteration time with the best design known."""
        return self.instance.iteration_time_s(self.compute_s, self.answer.busiest_bytes)

    @property
    def bound_s(self) -> float:
        """Iteration time that no design can beat."""
        return self.instance.iteration_time_s(self.compute_s, self.answer.bound_bytes)

    @property
    def next_kind(self) -> str:
        """What the next level of effort is."""
        return "" if self.job is None else next_kind(self.job, self.answer)

    @property
    def links(self) -> TopologyDesign | None:
        """Those of the best design known, without rings and routes."""
        design = self.answer.design
        return design and design.model_copy(update={"rings": (), "routes": (), "instance_digest": None})

    def bytes_for(self, time_s: float) -> float:
        """Bytes on the busiest link with which an iteration takes so long; 0 where it takes longer anyway."""
        if self.compute_s >= time_s:
            return 0.0
        hidden = self.compute_s if self.instance.overlap == "none" else 0.0
        return (time_s - hidden) * self.instance.link_bandwidth_bytes_per_s

    def gaps(self, bound_s: float) -> dict[str, float]:
        """How far the best design is from the bound for its strategies, and that from one for all strategies."""
        best = self.time_s
        parts = {"gap_of_topology": best - self.bound_s, "gap_of_strategies": self.bound_s - bound_s}
        return {name: max(0.0, part / best) if best else 0.0 for name, part in parts.items()}

    def assumed_bytes(self, time_s: float) -> float:
        """Bytes with which the choice is not worth while: those, or what it needs at least where that is known."""
        known = self.answer.bound_bytes
        return self.bytes_for(time_s) if math.isinf(known) else max(self.bytes_for(time_s), known)


def sent_by(instance: CodesignInstance, choices: Choices) -> tuple[tuple[float, ...], TopologyInstance | None, float]:
    """What choices send: a key that those have who send the same, with the compute time last; job and least bytes."""
    tables = tables_of(instance)
    figures = np.concatenate(tables.bytes_of(choices))
    largest = max(figures.max(initial=0.0), 1.0)
    key = (*np.round(figures / largest, _DIGITS).tolist(), largest, tables.compute_of(choices))
    job = job_of(instance, choices)
    return key, job, demand_of(tables).least_bytes(figures) if job is not None else 0.0


def assumed_loads(candidates: Iterable[Candidate], target_s: float) -> Mapping[Choices, float]:
    """Bytes of the busiest link that make choices no longer interesting; proven ones where those are more.

    Left out is what the master knows anyway.
    """
    values = ((each, each.assumed_bytes(target_s)) for each in candidates)
    return {each.choices: value for each, value in values if value > each.least_bytes * (1 + IMPROVEMENT_TOL)}


def untouched(instance: CodesignInstance, choices: Choices) -> Candidate:
    """A candidate of which nothing is known yet but closed forms."""
    key, job, least = sent_by(instance, choices)
    return Candidate(instance, choices, job, key[-1], least, first_answer(job))


def slowest_s(instance: CodesignInstance) -> float:
    """Iteration time that no plan needs: all layers one after the other, everything over one link."""
    tables = tables_of(instance)
    compute = sum(float(times.max()) for times in tables.compute_s)
    sent = float(demand_of(tables).sent.sum(axis=0) @ most_bytes(tables))
    return compute + sent / instance.link_bandwidth_bytes_per_s


def served_by(instance: CodesignInstance, plan: CodesignPlan) -> tuple[TopologyDesign, float] | None:
    """The links of a plan with the bytes of the busiest one, if the check passes; None if it does not.

    A relative's links with duplex optics are taken in both directions where the instance's are one-way.
    """
    designs = [plan.design]
    if instance.optics == "one_way":
        designs.append(plan.design.both_ways())
    for design in designs:
        judged = evaluate(instance, plan.model_copy(update={"design": design}))
        if judged.feasible:
            return design, float(judged.details.get("max_link_load_bytes", 0.0))
    return None
