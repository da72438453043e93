"""The independent check of a hot set, from the problem statement."""

from fractions import Fraction

import numpy as np

from ddlopt.models.aggregation.hot.instance import HotInstance, HotJob, HotSet, Reals, Whole
from ddlopt.models.contracts import Evaluation, Number, Violation

_CELLS = 2**20
"""Powers of (1 - p) that are calculated at a time."""


def evaluate_hot(instance: HotInstance, solution: HotSet, exact: bool = False) -> Evaluation:
    """Numbers that servers need not receive in a second, and what the hot set violates.

    Details are ``parameters`` (on switches), ``registers`` (that they take) and ``ingress_share``: what is saved, of
    all that servers receive without any switch.
    """
    broken = _malformed(instance, solution)
    if broken:
        return Evaluation(None, tuple(broken))
    violations = [*_twice(instance, solution), *_memory(instance, solution)]
    saved: Number = Fraction(0) if exact else 0.0
    for own, passing in zip(solution.placed, instance.passing, strict=True):
        for job, parameters, workers in zip(instance.jobs, own, passing, strict=True):
            saved += _exactly_saved(job, parameters, workers) if exact else _saved(job, parameters, workers)
    received = sum(_received(job, exact) for job in instance.jobs)
    details: dict[str, Number] = {
        "parameters": sum(len(parameters) for own in solution.placed for parameters in own),
        "registers": sum(_used(instance, own) for own in solution.placed),
        "ingress_share": saved / received if received else 0.0,
    }
    return Evaluation(saved, tuple(violations), details)


def _malformed(instance: HotInstance, solution: HotSet) -> list[Violation]:
    switches, jobs = len(instance.switches), len(instance.jobs)
    if len(solution.placed) != switches:
        return [Violation("every switch has its sets", "placed", len(solution.placed), switches)]
    found = []
    for s, own in enumerate(solution.placed):
        if len(own) != jobs:
            found.append(Violation("a switch has a set of each job", f"placed[{s}]", len(own), jobs))
            continue
        for j, parameters in enumerate(own):
            count = len(instance.jobs[j].frequencies)
            bad = np.flatnonzero((parameters < 0) | (parameters >= count))
            if bad.size:
                where = f"placed[{s}][{j}][{bad[0]}]"
                found.append(Violation("parameter exists", where, int(parameters[bad[0]]), count - 1))
    return found


def _twice(instance: HotInstance, solution: HotSet) -> list[Violation]:
    found = []
    for j, job in enumerate(instance.jobs):
        times = np.bincount(np.concatenate([own[j] for own in solution.placed]), minlength=len(job.frequencies))
        for parameter in np.flatnonzero(times > 1)[:10]:
            where = f"parameter {parameter} of job '{job.name}'"
            found.append(Violation("a parameter is on one switch", where, int(times[parameter]), 1))
    return found


def _memory(instance: HotInstance, solution: HotSet) -> list[Violation]:
    found = []
    for switch, own in zip(instance.switches, solution.placed, strict=True):
        used = _used(instance, own)
        if used > switch.registers:
            found.append(Violation("registers suffice", f"switch '{switch.name}'", used, switch.registers))
    return found


def _used(instance: HotInstance, own: tuple[Whole, ...]) -> int:
    return sum(int(job.widths[parameters].sum()) for job, parameters in zip(instance.jobs, own, strict=True))


def _saved(job: HotJob, parameters: Whole, workers: int) -> float:
    """By p times the sum over k below m of 1 - (1 - p)^k, which is the same and has no difference that cancels."""
    if not workers:
        return 0.0
    if job.saved_messages is not None:
        saved = job.saved_messages[parameters]
    else:
        p = job.frequencies[parameters]
        saved = np.concatenate([_sums(part, workers) for part in np.array_split(p, 1 + p.size * workers // _CELLS)])
    return job.iterations_per_s * float((job.widths[parameters] * saved).sum())


def _sums(p: Reals, workers: int) -> Reals:
    with np.errstate(divide="ignore"):
        powers = np.outer(np.arange(1.0, workers), np.log1p(-p))
    return np.asarray(p * -np.expm1(powers).sum(axis=0))


def _exactly_saved(job: HotJob, parameters: Whole, workers: int) -> Fraction:
    total = Fraction(0)
    if not workers:
        return total
    for parameter in parameters.tolist():
        if job.saved_messages is not None:
            saved = Fraction(float(job.saved_messages[parameter]))
        else:
            p = Fraction(float(job.frequencies[parameter]))
            saved = workers * p - (1 - (1 - p) ** workers)
        total += int(job.widths[parameter]) * saved
    return Fraction(job.iterations_per_s) * total


def _received(job: HotJob, exact: bool) -> Number:
    """Numbers in a second that the servers of a job receive without switches."""
    if exact:
        pairs = zip(job.widths.tolist(), job.frequencies.tolist(), strict=True)
        heat: Number = sum((width * Fraction(p) for width, p in pairs), Fraction(0))
        return Fraction(job.iterations_per_s) * job.workers * heat
    return job.iterations_per_s * job.workers * float((job.widths * job.frequencies).sum())
