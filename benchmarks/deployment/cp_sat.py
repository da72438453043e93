"""CP-SAT's model of plans beside ``exact``: the bound and the best plan after the same time, on one thread each.

OR-Tools and HiGHS's Python package cannot be loaded into one process, and ddlopt does not depend on the former. It
needs an environment of its own, which ``--python`` names:

    python -m venv cp-sat && cp-sat/bin/pip install ortools
    python benchmarks deployment/cp_sat --python cp-sat/bin/python

CP-SAT (:mod:`benchmarks.deployment.cp_sat_model`) orders tasks freely, where the simulator takes them first come, first
served: its bound holds, and its plan is simulated as all plans are. Neither has a plan to begin with. Seconds are the
processor's.
"""

import json
import subprocess
from pathlib import Path

from benchmarks.harness import Benchmark, Option, Skipped, clocked
from ddlopt.certificates.deployment.plan.choices import choices_of
from ddlopt.instances import load
from ddlopt.models.deployment import Deployment, evaluate
from ddlopt.models.deployment.plan.shares import UNITS, time_at
from ddlopt.models.deployment.plan.simulator.tasks import all_reduce_s
from ddlopt.solvers.contracts import Limits

NAMES = (
    *(f"deployment/tiny-{name}" for name in ("g2-m2-s1", "g3-m2-s2", "g3-m3-s3", "g4-m2-s4", "g4-m3-s5")),
    *(f"deployment/{network}-two-machines" for network in ("vgg19", "bert-small", "transformer-base")),
)
INSTALL = "python -m venv cp-sat && cp-sat/bin/pip install ortools, then --python cp-sat/bin/python"
UNITS_OF_BEST = 1_000_000
"""Whole numbers of the best known step."""
_SLOWEST = 30.0
"""Seconds by the clock for one of the processor, on a busy machine, after which there is no answer."""


def data_of(instance, known, best_s, asked):
    """What the model reads."""
    unit_s, at = best_s / UNITS_OF_BEST, instance.device_group_of.tolist()
    numbers: dict = {}
    choices, position = [], [0] * len(instance.operators)
    for members, own in zip(instance.members, known, strict=True):
        for k, place in enumerate(members):
            position[place] = k
        rows = []
        for choice in own:
            reduce_s = [
                all_reduce_s(instance, choice.plan.device_groups, instance.operators[place].gradient_bytes, float)
                if sync == "reduce"
                else 0.0
                for place, sync in zip(members, choice.syncs, strict=True)
            ]
            seats = [numbers.setdefault(seat, len(numbers)) for seat in choice.seats]
            rows.append({"seats": seats, "syncs": choice.syncs, "reduce_s": reduce_s})
        choices.append(rows)
    seats = list(numbers)
    kinds = [instance.device_groups[j].type for j in at]
    time_s = [
        [[time_at(instance.shares, each.times_s[kinds[r.device]], r.units) for r in seat] for seat in seats]
        for each in instance.operators
    ]
    within = [group.bandwidth_bytes_per_s for group in instance.device_groups]
    rate = [[within[a] if a == b else float(instance.bandwidth_bytes_per_s[a, b]) for b in at] for a in at]
    link = [[("own", i, j) if a == b else ("shared", a, b) for j, b in enumerate(at)] for i, a in enumerate(at)]
    return {
        "unit_s": unit_s,
        "most": 2 * UNITS_OF_BEST,
        "choices": choices,
        "position": position,
        "group": [each.group for each in instance.operators],
        "seats": seats,
        "time_s": time_s,
        "taken": {f"{a} {b}": taken(one, other, at) for a, one in enumerate(seats) for b, other in enumerate(seats)},
        "tensors": [(each.producer, each.consumers, each.size_bytes) for each in instance.tensors],
        "gradient_bytes": [each.gradient_bytes for each in instance.operators],
        "resident_bytes": [each.resident_bytes for each in instance.operators],
        "memory_bytes": [instance.device_groups[j].memory_bytes for j in at],
        "rate": rate,
        "link": link,
        "latency_s": instance.latency_s,
        "batch_units": UNITS,
        "time_limit_s": asked.time_limit,
        "seed": 0,
    }


def taken(one, other, at):
    """What replicas of one seat give those of another: devices, and the part of the batch."""
    found = []
    for reader in other:
        if all(holder.units == UNITS for holder in one):
            near = [each for each in one if each.device == reader.device]
            near = near or [each for each in one if at[each.device] == at[reader.device]] or list(one)
            found.append((near[0].device, reader.device, reader.first, reader.last))
            continue
        for holder in one:
            first, last = max(holder.first, reader.first), min(holder.last, reader.last)
            if first < last:
                found.append((holder.device, reader.device, first, last))
    return found


def require(asked):
    """OR-Tools, before anything is solved."""
    try:
        found = subprocess.run([asked.python, "-I", "-c", "import ortools"], capture_output=True, check=False)
    except OSError as problem:
        raise Skipped(f"{problem}; {INSTALL}") from None
    if found.returncode:
        raise Skipped(f"{asked.python} has no OR-Tools; {INSTALL}")


def answer_of(asked, data):
    """The model's answer, from a process of the other environment."""
    script = Path(__file__).with_name("cp_sat_model.py")
    try:
        done = subprocess.run(
            [asked.python, "-I", str(script)],
            input=json.dumps(data),
            capture_output=True,
            text=True,
            timeout=_SLOWEST * asked.time_limit,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return None
    if done.returncode:
        raise RuntimeError(done.stderr)
    return json.loads(done.stdout)


def deployment_of(instance, known, plan):
    """The plan as a deployment."""
    own = [choices[c] for choices, c in zip(known, plan, strict=True)]
    duplicated = sorted(place for choice in own for place in choice.duplicated)
    return Deployment(instance=instance.name, groups=tuple(choice.plan for choice in own), duplicated=tuple(duplicated))


def side_by_side(asked):
    """Bound, simulated step of the best plan, and gap of each."""
    require(asked)
    for name in asked.names or NAMES:
        instance = load(name)
        known = [choices_of(instance, group) for group in range(instance.groups)]
        ours, spent = clocked("exact", instance, Limits(asked.patience * asked.time_limit))
        theirs = answer_of(asked, data_of(instance, known, ours.objective, asked))
        row = {"instance": instance.name, "`exact`: bound": ms(ours.bound), "best": ms(ours.objective)}
        row["gap"] = f"{ours.gap:.1%}"
        row["s"] = f"{spent.processor_s:.1f}"
        if theirs is None:
            yield row | {"CP-SAT: bound": "–", "its schedule": "–", "its plan, simulated": "–", "gap ": "–", "s ": "–"}
            continue
        step_s = None
        if theirs["plan"] is not None:
            evaluation = evaluate(instance, deployment_of(instance, known, theirs["plan"]))
            step_s = evaluation.objective if evaluation.feasible else None
        gap = None if step_s is None else 1 - theirs["bound_s"] / step_s
        row |= {"CP-SAT: bound": ms(theirs["bound_s"]), "its schedule": ms(theirs["time_s"])}
        row |= {"its plan, simulated": ms(step_s), "gap ": "–" if gap is None else f"{gap:.1%}"}
        yield row | {"s ": f"{theirs['processor_s']:.1f}"}


def ms(seconds):
    """Milliseconds, or that there are none."""
    return "–" if seconds is None else f"{1e3 * seconds:.4g} ms"


BENCH = Benchmark(
    side_by_side,
    names=Option(
        [], "instances; those of the documentation by default", ["deployment/tiny-g2-m2-s1"], str, positional=True
    ),
    python=Option("python-with-ortools", "interpreter of an environment that has OR-Tools", type=str),
    time_limit=Option(30.0, "seconds for each, for CP-SAT of the processor", 2.0),
    patience=Option(1.0, "times as long by the clock for `exact`, on a busy machine"),
    in_all=False,
)
