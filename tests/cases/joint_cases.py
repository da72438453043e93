"""Few jobs with plans of every kind, odd on purpose, and proven times of all of their problems."""

import random
from functools import cache

import pipeline_cases
import step_cases

import ddlopt
from ddlopt.instances.generators import generate
from ddlopt.models.cluster import JointInstance
from ddlopt.models.deployment import PipelineInstance
from ddlopt.models.deployment.pipeline.evaluate import evaluate_pipeline
from ddlopt.models.deployment.step.evaluate import evaluate_step
from ddlopt.models.errors import InstanceError


def drawn(seed, kinds=("pipeline", "step", "codesign", "table"), most=3):
    """Jobs that share workloads, problems without any plan, one problem for two widths, tables beside problems."""
    draw = random.Random(f"joint {seed}")
    servers = draw.randint(2, 4)
    problems, workloads = [], []
    for place in range(draw.randint(1, 2)):
        choices = []
        for width in sorted(draw.sample(range(1, servers + 1), draw.randint(1, 2))):
            kind = draw.choice(kinds)
            if kind == "table" or (kind == "codesign" and width < 2):
                choices.append({"servers": width, "step_s": draw.choice((0.5, 1, 3))})
                continue
            if not (problems and kind != "codesign" and draw.random() < 0.2):
                problems.append(_problem(kind, width, draw))
            choices.append({"servers": width, "problem": len(problems) - 1})
        workloads.append({"name": f"w{place}", "choices": choices})
    jobs = [
        {
            "name": f"j{place}", "workload": draw.randrange(len(workloads)), "iterations": draw.choice((1, 2, 2.5)),
            "arrival_s": (arrival := draw.choice((0, 0, 1))), "weight": draw.choice((0, 1, 3)),
            "deadline_s": arrival + draw.choice((0, 2)),
        }
        for place in range(draw.randint(1, most))
    ]  # fmt: skip
    objective = draw.choice(("makespan", "weighted_completion", "weighted_tardiness"))
    return JointInstance.from_data(
        {
            "name": f"drawn-{seed}",
            "servers": servers,
            "problems": problems,
            "workloads": workloads,
            "jobs": jobs,
            "objective": objective,
        }
    )


def _problem(kind, width, draw):
    """One whose fastest plan, if there is any, takes some time: nothing beside something is out of range."""
    while True:
        seed = draw.randrange(2**20)
        if kind == "codesign":
            return generate("codesign", "random", seed, servers=width, degree=1, layers=2, strategies=2)
        found = pipeline_cases.drawn(seed, most=2) if kind == "pipeline" else step_cases.drawn(seed)
        least = least_s(found)
        if least is None or least > 1e-6:
            return found


def proven_tables(instance):
    """Jobs with the least time of a step of every problem, by all plans or a proof; None if a job has no plan."""
    try:
        return instance.at(lambda _, choice: least_s(instance.inner(choice)))
    except InstanceError:
        return None


@cache
def least_s(inner):
    """Of every plan; None where there is none."""
    if inner.family == "codesign":
        return max(1e-12, ddlopt.solve(inner, gap=1e-9, time_limit=60).objective)
    if isinstance(inner, PipelineInstance):
        found = [evaluate_pipeline(inner, plan) for plan in pipeline_cases.plans(inner)]
    else:
        found = [evaluate_step(inner, plan) for plan in step_cases.plans(inner)]
    times = [float(each.objective) for each in found if each.feasible]
    return max(1e-12, min(times)) if times else None
