"""The independent check of a schedule of cluster jobs, from the statement of the problem."""

from collections.abc import Iterator
from fractions import Fraction

from ddlopt.models.cluster.jobs.instance import JobsInstance, JobsSchedule
from ddlopt.models.contracts import Evaluation, Number, Violation


def evaluate_jobs(instance: JobsInstance, solution: JobsSchedule, exact: bool = False) -> Evaluation:
    """The objective of a schedule, and what it violates.

    Starts are fractions and everything is counted in them; without ``exact`` they are rounded at the end.

    Details are ``makespan_s``, ``mean_completion_s``, and ``utilization`` (server-seconds that jobs use, over servers
    times makespan).
    """
    wrong = list(_form(instance, solution))
    if wrong:
        return Evaluation(None, tuple(wrong))
    check = _rigid if instance.mode == "rigid" else _slots
    ends, busy, wrong = check(instance, solution)
    wrong += _servers(instance, busy)
    if any(each.kind == "all iterations are done" for each in wrong):
        return Evaluation(None, tuple(wrong))
    last = max(ends)
    details: dict[str, Number] = {
        "makespan_s": last,
        "mean_completion_s": sum(ends) / len(ends),
        "utilization": sum((end - start) * count for start, end, count in busy) / (instance.servers * last),
    }
    objective = _objective(instance, ends)
    if exact:
        return Evaluation(objective, tuple(wrong), details)
    return Evaluation(float(objective), tuple(wrong), {name: float(value) for name, value in details.items()})


Busy = list[tuple[Fraction, Fraction, int]]


def _form(instance: JobsInstance, solution: JobsSchedule) -> Iterator[Violation]:
    if len(solution.runs) != len(instance.jobs):
        yield Violation("every job has an entry", "runs", len(solution.runs), len(instance.jobs))
        return
    for job, own in zip(instance.jobs, solution.runs, strict=True):
        where = f"job '{job.name}'"
        if not own or (instance.mode == "rigid" and len(own) != 1):
            yield Violation("every job runs", where, len(own), 1)
        for run in own:
            if run.servers > len(job.step_s) or job.step_s[run.servers - 1] is None:
                yield Violation("widths have a step time", where, run.servers, len(job.step_s))
            if instance.mode == "slots" and "/" in run.start:
                yield Violation("slots are whole numbers", where, Fraction(run.start), int(Fraction(run.start)))
        starts = [Fraction(run.start) for run in own]  # as numbers: "01" is slot 1, too
        if len(set(starts)) < len(starts):
            yield Violation("a job has servers once a slot", where, len(starts), len(set(starts)))


def _rigid(instance: JobsInstance, solution: JobsSchedule) -> tuple[list[Fraction], Busy, list[Violation]]:
    ends, busy, wrong = list[Fraction](), Busy(), list[Violation]()
    for job, (run,) in zip(instance.jobs, solution.runs, strict=True):
        start, step = Fraction(run.start), job.step_s[run.servers - 1]
        assert step is not None
        end = start + Fraction(job.iterations) * Fraction(step)
        if start < Fraction(job.arrival_s):
            wrong.append(
                Violation("a job starts after its arrival", f"job '{job.name}'", start, Fraction(job.arrival_s))
            )
        ends.append(end)
        busy.append((start, end, run.servers))
    return ends, busy, wrong


def _slots(instance: JobsInstance, solution: JobsSchedule) -> tuple[list[Fraction], Busy, list[Violation]]:
    slot = Fraction(instance.slot_s or 0)
    ends, busy, wrong = list[Fraction](), Busy(), list[Violation]()
    for job, own in zip(instance.jobs, solution.runs, strict=True):
        left, end = Fraction(job.iterations), None
        for run in sorted(own, key=lambda run: int(run.start)):
            begins, step = int(run.start) * slot, job.step_s[run.servers - 1]
            assert step is not None
            where = f"job '{job.name}', slot {int(run.start)}"
            if begins < Fraction(job.arrival_s):
                wrong.append(Violation("a job starts after its arrival", where, begins, Fraction(job.arrival_s)))
            if end is not None:
                wrong.append(Violation("a job that is done has no servers", where, run.servers, 0))
            elif left * Fraction(step) <= slot:
                end, left = begins + left * Fraction(step), Fraction(0)
            else:
                left -= slot / Fraction(step)
            # Its servers are its own to the end of the slot.
            busy.append((begins, begins + slot, run.servers))
        if end is None:
            wrong.append(Violation("all iterations are done", f"job '{job.name}'", left, 0))
        ends.append(end or Fraction(0))
    return ends, busy, wrong


def _servers(instance: JobsInstance, busy: Busy) -> Iterator[Violation]:
    """Moments at which jobs have more servers than there are; only the first is told."""
    used, changes = 0, dict[Fraction, int]()
    for start, end, count in busy:
        changes[start] = changes.get(start, 0) + count
        changes[end] = changes.get(end, 0) - count
    for moment in sorted(changes):
        used += changes[moment]
        if used > instance.servers:
            yield Violation("servers suffice", f"{float(moment):.6g} s", used, instance.servers)
            return


def _objective(instance: JobsInstance, ends: list[Fraction]) -> Fraction:
    if instance.objective == "makespan":
        return max(ends)
    found = Fraction(0)
    for job, end in zip(instance.jobs, ends, strict=True):
        late = end
        if instance.objective == "weighted_tardiness":
            late = max(Fraction(0), end - Fraction(job.deadline_s or 0))
        found += Fraction(job.weight) * late
    return found
