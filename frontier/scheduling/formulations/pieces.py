"""Utilities of jobs as pieces of tangents, in models whose jobs have done nothing before."""

from ddlopt.models.scheduling.concave.piecewise import Pieces, outer_pieces
from ddlopt.models.scheduling.formulations.time_indexed.runs import Choices
from ddlopt.models.scheduling.instance import SchedulingInstance


def pieces_of(instance: SchedulingInstance, c: Choices) -> Pieces:
    """Outer approximation of a job's utility on what it can reach."""
    wanted = instance.jobs[c.job].minibatches
    high = min(1.0, c.reach * c.unit / wanted)
    utility = instance.jobs[c.job].utility
    assert utility.kind != "all_or_nothing"
    return outer_pieces(utility, 0.0, high, c.gains[0] * c.unit / wanted)
