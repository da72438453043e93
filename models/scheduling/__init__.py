"""Scheduling of ring all-reduce jobs on a cluster over time (GADGET, INFOCOM 2022; SJF-BCO, MobiHoc 2022)."""

from ddlopt.models.problem import Family
from ddlopt.models.scheduling.evaluate import evaluate
from ddlopt.models.scheduling.instance import Job, SchedulingInstance, ServerGroup
from ddlopt.models.scheduling.network import Contention, Network
from ddlopt.models.scheduling.problem import PROBLEM
from ddlopt.models.scheduling.solution import Run, Schedule
from ddlopt.models.scheduling.timing import PolluxTiming, RingTiming
from ddlopt.models.scheduling.utility import AllOrNothing, Capped, Fair, Logarithmic, LossCurve

__all__ = [
    "FAMILY",
    "PROBLEMS",
    "AllOrNothing",
    "Capped",
    "Contention",
    "Fair",
    "Job",
    "Logarithmic",
    "LossCurve",
    "Network",
    "PolluxTiming",
    "RingTiming",
    "Run",
    "Schedule",
    "SchedulingInstance",
    "ServerGroup",
    "evaluate",
]

PROBLEMS = (PROBLEM,)
FAMILY = Family.of_one("ring all-reduce jobs on a cluster over time", PROBLEM)
