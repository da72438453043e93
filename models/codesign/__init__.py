"""Parallelization strategy, optical links, rings and routes for one training job, together."""

from ddlopt.models.codesign.evaluate import evaluate
from ddlopt.models.codesign.instance import CodesignInstance, Device, Layer, Layout, Reduction, Strategy
from ddlopt.models.codesign.job import job_of
from ddlopt.models.codesign.problem import PROBLEM
from ddlopt.models.codesign.solution import CodesignPlan
from ddlopt.models.problem import Family

__all__ = [
    "FAMILY",
    "PROBLEMS",
    "CodesignInstance",
    "CodesignPlan",
    "Device",
    "Layer",
    "Layout",
    "Reduction",
    "Strategy",
    "evaluate",
    "job_of",
]

PROBLEMS = (PROBLEM,)
FAMILY = Family.of_one(
    "parallelization strategy, optical links, rings and routes for one training job together", PROBLEM
)
