"""The optimum of tiny compression timelines by trying every choice and every bucketing, and random tiny timelines.

It knows the problem statement only: lanes, buckets and budgets are calculated here once more.
"""

from math import inf
from typing import NamedTuple

from ddlopt.models.compression import (
    CompressionInstance,
    CompressionPlan,
    ExponentialCurve,
    GradedGradient,
    Gradient,
    LevelInstance,
    Option,
    PointCurve,
)
from ddlopt.models.compression.timeline.choices import answer_of, as_timeline

TOLERANCE = 1e-9

COMPRESSORS = ("none", "fp16", "top_k", "dgc", "random_k", "qsgd", "sign", "onebit")


class State(NamedTuple):
    """What is known after some messages: encoding so far, when the wire is free, error; how it came to be."""

    encode: float = 0.0
    wire: float = 0.0
    error: float = 0.0
    choices: tuple[int, ...] = ()
    buckets: tuple[int, ...] = ()


def every_plan(instance):
    """All plans of a timeline as states, whatever the budgets say."""
    options = [instance.menus[gradient.menu] for gradient in instance.gradients]

    def bucket(state, first, last, label):
        """The state after one message more, or None if there is no such message."""
        encode, lasting, launch, error, choices = state.encode, 0.0, 0.0, state.error, state.choices
        size = 0
        for i in range(first, last + 1):
            choice = next((k for k, option in enumerate(options[i]) if option.label == label), None)
            if choice is None:
                return None
            option = options[i][choice]
            encode, error = encode + option.encode_s, error + option.error
            lasting, launch = lasting + option.wire_s + option.decode_s, max(launch, option.launch_s)
            size, choices = size + 4 * instance.gradients[i].elements, (*choices, choice)
        if last > first and instance.largest_bucket_bytes is not None and size > instance.largest_bucket_bytes:
            return None
        wire = max(state.wire, instance.gradients[last].ready_s + encode) + lasting + launch
        return State(encode, wire, error, choices, (*state.buckets, last - first + 1))

    def extend(state, first):
        if first == instance.size:
            yield state
            return
        for last in range(first, instance.size if instance.fusion else first + 1):
            for option in options[first]:
                after = bucket(state, first, last, option.label)
                if after is not None:
                    yield from extend(after, last + 1)

    return extend(State(), 0)


def brute_force(instance):
    """The best objective and an answer that has it; (inf, None) where no plan keeps the budgets.

    Takes a :class:`CompressionInstance` or a :class:`LevelInstance`.
    """
    timeline = as_timeline(instance)
    least, best = inf, None
    for state in every_plan(timeline):
        if timeline.error_budget is not None and state.error > timeline.error_budget * (1 + TOLERANCE):
            continue
        if timeline.time_budget_s is not None and state.wire > timeline.time_budget_s * (1 + TOLERANCE):
            continue
        objective = state.wire if timeline.goal == "time" else state.error
        if objective < least:
            least, best = objective, state
    if best is None:
        return inf, None
    buckets = best.buckets if timeline.fusion else ()
    plan = CompressionPlan(instance=timeline.name, choices=best.choices, buckets=buckets)
    return least, plan if isinstance(instance, CompressionInstance) else answer_of(instance, plan)


def random_timeline_case(rng, gradients=None, options=None, fusion=None, goal=None, budget=None, whole=None):
    """A tiny timeline; what is not given is drawn.

    Parameters
    ----------
    rng : numpy.random.Generator
    gradients, options : int
        Number of gradients (1 .. 5), and of the options of the longest menu (1 .. 3).
    fusion : bool
        With a limit on buckets now and then.
    goal : {"time", "error"}
    budget : bool
        Whether goal ``time`` has an error budget. Budgets are what some random plan uses, so that they can be kept.
    whole : bool
        Whether all figures are small whole numbers, among which there are ties.
    """
    gradients = int(rng.integers(1, 6)) if gradients is None else gradients
    options = int(rng.integers(1, 4)) if options is None else options
    fusion = bool(rng.integers(2)) if fusion is None else fusion
    goal = str(rng.choice(["time", "time", "error"])) if goal is None else goal
    budget = bool(rng.integers(2)) if budget is None else budget
    whole = bool(rng.integers(2)) if whole is None else whole

    def figure(most):
        """0 now and then, so that lanes run empty and options dominate each other."""
        if rng.random() < 0.25:
            return 0.0
        return float(rng.integers(0, most + 1) if whole else rng.uniform(0, most))

    def menu():
        names = rng.permutation(COMPRESSORS)[: int(rng.integers(1, options + 1))] if rng.random() < 0.5 else COMPRESSORS
        names = [str(name) for name in names[:options]]
        return tuple(
            Option(
                label=name,
                compressor=name,
                encode_s=figure(3),
                launch_s=figure(3),
                wire_s=figure(8),
                decode_s=figure(2),
                error=figure(5),
            )
            for name in names
        )

    menus = tuple(menu() for _ in range(int(rng.integers(1, gradients + 1))))
    ready, parts = float(figure(3)), []
    for place in range(gradients):
        shape = tuple(int(size) for size in rng.integers(1, 5, size=int(rng.integers(0, 3))))
        parts.append(Gradient(name=f"g{place}", shape=shape, ready_s=ready, menu=int(rng.integers(len(menus)))))
        ready += figure(4)
    data = {"name": "tiny", "gradients": tuple(parts), "menus": menus, "fusion": fusion}
    if fusion and rng.random() < 0.5:
        data["largest_bucket_bytes"] = float(rng.integers(1, 100))
    free = CompressionInstance(**data)
    plans = list(every_plan(free))
    some = plans[int(rng.integers(len(plans)))]
    if goal == "error":
        data |= {"goal": goal, "time_budget_s": max(some.wire, 1e-3)}
    elif budget:
        data["error_budget"] = max(some.error, free.least_error)  # sums of other orders differ in the last digit
    return CompressionInstance(**data)


def random_levels_case(rng, gradients=None, goal=None, knapsack=False):
    """A tiny problem of levels; ``knapsack``: nothing is encoded and all is ready at 0, so that the time is a sum."""
    gradients = int(rng.integers(1, 5)) if gradients is None else gradients
    goal = str(rng.choice(["time", "error"])) if goal is None else goal
    parts, ready = [], 0.0
    for place in range(gradients):
        scale = float(rng.uniform(0.5, 5))
        curve = ExponentialCurve(lowest=1, highest=int(rng.integers(1, 5)), scale=4 * scale)
        if rng.random() < 0.5:
            levels = sorted(rng.choice(8, size=int(rng.integers(1, 5)), replace=False).tolist())
            curve = PointCurve(levels=tuple(levels), errors=tuple(scale / (1 + level) for level in levels))
        encode = {} if knapsack else {"encode_s": float(rng.random()), "encode_s_per_level": float(rng.random() / 4)}
        parts.append(
            GradedGradient(
                name=f"g{place}",
                shape=(8, 8),
                compressor="qsgd",
                ready_s=ready,
                curve=curve,
                launch_s=float(rng.random()),
                wire_s_per_level=float(rng.uniform(0.1, 1)),
                **encode,
            )
        )
        ready += 0.0 if knapsack else float(rng.uniform(0, 2))
    free = LevelInstance(name="levels", gradients=tuple(parts), error_budget=1e9)
    plans = list(every_plan(as_timeline(free)))
    some = plans[int(rng.integers(len(plans)))]
    if goal == "error":
        return LevelInstance(name="levels", gradients=tuple(parts), goal=goal, time_budget_s=max(some.wire, 1e-3))
    return LevelInstance(name="levels", gradients=tuple(parts), error_budget=max(some.error, free.least_error))
