"""The optimum of tiny timelines with lanes by trying every choice and every bucketing, and random ones.

It knows the problem statement only. A message moves on when its lane has served all messages before it that pass this
lane.
"""

from itertools import product
from math import inf

from ddlopt.models.compression import CompressionInstance, CompressionPlan, Gradient, Option, Stage

TOLERANCE = 1e-9
COMPRESSORS = ("none", "fp16", "top_k", "dgc", "random_k")


def bucketings(count, fusion):
    """All ways to cut so many gradients into runs."""
    if not fusion:
        yield (1,) * count
        return
    for cuts in product((False, True), repeat=count - 1):
        sizes = [1]
        for cut in cuts:
            if cut:
                sizes.append(1)
            else:
                sizes[-1] += 1
        yield tuple(sizes)


def time_and_error(instance, choices, sizes):
    """Both, or None where a bucket mixes labels or is too large."""
    jobs, encode, first, error = [], 0.0, 0, 0.0
    for size in sizes:
        members = range(first, first + size)
        options = [instance.menus[instance.gradients[i].menu][choices[i]] for i in members]
        held = sum(4 * instance.gradients[i].elements for i in members)
        if len({option.label for option in options}) > 1:
            return None
        if size > 1 and instance.largest_bucket_bytes is not None and held > instance.largest_bucket_bytes:
            return None
        encode += sum(option.encode_s for option in options)
        error += sum(option.error for option in options)
        ready = instance.gradients[first + size - 1].ready_s + encode
        path = []
        for lane in instance.lanes:
            stages = [stage for option in options for stage in option.stages if stage.lane == lane]
            if stages:
                path.append((lane, sum(each.busy_s for each in stages) + max(each.launch_s for each in stages)))
        jobs.append((ready, path))
        first += size
    left = {}  # (job, lane): when it has passed
    for lane in instance.lanes:
        for job, (ready, path) in enumerate(jobs):
            names = [name for name, _ in path]
            if lane not in names:
                continue
            place = names.index(lane)
            came = left[job, names[place - 1]] if place else ready
            queue = [left[other, lane] for other in range(job) if (other, lane) in left]
            left[job, lane] = max([came, *queue]) + path[place][1]
    return max([*left.values(), *(ready for ready, _ in jobs)]), error


def brute_force(instance):
    """The best objective and a plan that has it; (inf, None) where no plan keeps the budgets."""
    least, best = inf, None
    menus = [range(len(instance.menus[gradient.menu])) for gradient in instance.gradients]
    for choices in product(*menus):
        for sizes in bucketings(instance.size, instance.fusion):
            found = time_and_error(instance, choices, sizes)
            if found is None:
                continue
            time, error = found
            if instance.error_budget is not None and error > instance.error_budget * (1 + TOLERANCE):
                continue
            if instance.time_budget_s is not None and time > instance.time_budget_s * (1 + TOLERANCE):
                continue
            objective = time if instance.goal == "time" else error
            if objective < least:
                least, best = objective, (choices, sizes)
    if best is None:
        return inf, None
    choices, sizes = best
    return least, CompressionPlan(instance=instance.name, choices=choices, buckets=sizes if instance.fusion else ())


def random_lane_case(rng, fusion=None, goal=None, budget=None):
    """A tiny timeline with one to three lanes, which options leave out now and then; what is not given is drawn."""
    gradients, lanes = int(rng.integers(1, 6)), [f"lane {k}" for k in range(int(rng.integers(1, 4)))]
    fusion = bool(rng.integers(2)) if fusion is None else fusion
    goal = str(rng.choice(["time", "time", "error"])) if goal is None else goal
    budget = bool(rng.integers(2)) if budget is None else budget
    whole = bool(rng.integers(2))

    def figure(most):
        if rng.random() < 0.25:
            return 0.0
        return float(rng.integers(0, most + 1) if whole else rng.uniform(0, most))

    def stages():
        return tuple(Stage(lane=lane, launch_s=figure(2), busy_s=figure(6)) for lane in lanes if rng.random() < 0.75)

    def menu():
        labels = COMPRESSORS[: int(rng.integers(1, 4))]
        return tuple(
            Option(label=each, compressor=each, encode_s=figure(3), wire_s=0.0, error=figure(5), stages=stages())
            for each in labels
        )

    menus = tuple(menu() for _ in range(int(rng.integers(1, gradients + 1))))
    ready, parts = figure(3), []
    for place in range(gradients):
        shape = (int(rng.integers(1, 5)),)
        parts.append(Gradient(name=f"g{place}", shape=shape, ready_s=ready, menu=int(rng.integers(len(menus)))))
        ready += figure(4)
    data = {"name": "tiny-lanes", "gradients": tuple(parts), "menus": menus, "fusion": fusion, "lanes": tuple(lanes)}
    if fusion and rng.random() < 0.5:
        data["largest_bucket_bytes"] = float(rng.integers(1, 60))
    if goal == "error" or budget:
        free = CompressionInstance(**data)
        some = tuple(int(rng.integers(len(menus[gradient.menu]))) for gradient in parts)
        time, error = time_and_error(free, some, (1,) * gradients)
        if goal == "error":
            data |= {"goal": goal, "time_budget_s": max(time, 1e-3)}
        else:
            data["error_budget"] = max(error, free.least_error)
    return CompressionInstance(**data)
