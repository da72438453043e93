"""Utilities of jobs as pieces of tangents, and the smallest part done, where jobs have done nothing before."""

from collections.abc import Callable, Sequence
from typing import Any

import pyomo.environ as pyo

from ddlopt.models.linear import linear
from ddlopt.models.scheduling.concave.piecewise import Pieces, outer_pieces
from ddlopt.models.scheduling.formulations.time_indexed.runs import Choices, Terms
from ddlopt.models.scheduling.instance import SchedulingInstance
from ddlopt.models.scheduling.units import objective_unit

Done = Callable[[Choices], Terms]


def pieces_of(instance: SchedulingInstance, c: Choices) -> Pieces:
    """Outer approximation of a job's utility on what it can reach."""
    wanted = instance.jobs[c.job].minibatches
    high = min(1.0, c.reach * c.unit / wanted)
    utility = instance.jobs[c.job].utility
    assert utility.kind != "all_or_nothing"
    return outer_pieces(utility, 0.0, high, c.gains[0] * c.unit / wanted)


def add_utilities(block: pyo.Block, instance: SchedulingInstance, jobs: Sequence[Choices], done: Done) -> Terms:
    """Progress of jobs within pieces of their utilities, of which what they have ``done`` is the sum; their worth."""
    pieces = {c.job: pieces_of(instance, c) for c in jobs}
    places = {c.job: c for c in jobs}
    index = [(i, m) for i, piece in pieces.items() for m in range(len(piece.lengths))]
    block.PIECES = pyo.Set(dimen=2, initialize=index, doc="(job, piece of its utility)")
    block.fill = pyo.Var(
        block.PIECES,
        bounds=lambda _, i, m: (0, float(pieces[i].lengths[m]) * places[i].wanted),
        doc="progress within the piece",
    )

    @block.Constraint(list(pieces), doc="only progress fills the pieces of a utility")
    def progress_fills_pieces(b: Any, i: int) -> Any:
        filled = [(-1.0, b.fill[i, m]) for m in range(len(pieces[i].lengths))]
        return linear([*done(places[i]), *filled]) >= 0 if filled else pyo.Constraint.Skip

    unit = objective_unit(instance)
    return [(float(pieces[i].slopes[m]) / places[i].wanted / unit, block.fill[i, m]) for i, m in index]


def add_smallest(block: pyo.Block, instance: SchedulingInstance, jobs: Sequence[Choices], done: Done) -> Terms:
    """The smallest part that a job has ``done``."""
    unit = objective_unit(instance)
    top = min(1.0, *(c.reach / c.wanted if c.gains else 0.0 for c in jobs))
    places = {c.job: c for c in jobs}
    block.smallest = pyo.Var(bounds=(0, top / unit), doc="smallest part done, in units")

    @block.Constraint(list(places), doc="no job has done a smaller part")
    def part_is_no_smaller(b: Any, i: int) -> Any:
        # More than the least of the jobs can come to is of no use to any.
        wanted = places[i].wanted
        parts = [(min(gain, wanted * top) / (wanted * unit), x) for gain, x in done(places[i])]
        return linear([*parts, (-1.0, b.smallest)]) >= 0

    return [(1.0, block.smallest)]
