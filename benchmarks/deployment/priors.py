"""Why TAG's search, with whatever prior, stays behind a local search: its actions, the tree, or the network.

All tables have how many times as fast as data parallelism plans are; TAG's search has its 800 playouts, and a seed
draws the order of equal actions. ``space`` says what is in TAG's action space at all: the best plan that our local
search finds within it. ``perfect`` gives the tree that plan as its prior, each action with so much of the probability
and the rest spread evenly, and then with a wrong action in some groups. ``decoding`` has the priors of the package,
and of files of weights, without a search, with it, and with it where groups that are not decided do what the prior
prefers (``filled``), beside our local search after as many simulations. ``way`` says what the tree sees on the way to
the network's plan, ``imitated`` what the search finds that a network learns from, and ``agreement`` how well it has
learned. With ``--by-speed`` the batch may be split by speed in the last four.
"""

import statistics
from functools import cache
from pathlib import Path

import numpy as np

from benchmarks.harness import Benchmark, Option
from ddlopt import instances
from ddlopt.analysis.lab.plan_prior.beam import beam
from ddlopt.analysis.lab.plan_prior.expert import Counted, searched
from ddlopt.analysis.lab.plan_prior.network import weights_in
from ddlopt.analysis.lab.plan_prior.priors import GraphPrior
from ddlopt.instances import load
from ddlopt.instances.library.deployment.plan import NETWORKS
from ddlopt.models.deployment.plan.simulator.simulate import simulate
from ddlopt.solvers.contracts import Limits
from ddlopt.solvers.deployment.plan.actions import Action
from ddlopt.solvers.deployment.plan.priors import State, TablePrior, prior_named, uniform
from ddlopt.solvers.deployment.plan.rater import PlanRater
from ddlopt.solvers.deployment.plan.search import Walk
from ddlopt.solvers.deployment.plan.tag import TreeSearch
from ddlopt.solvers.heuristic import Clock

TWO = ("vgg19", "transformer-base", "bert-small")
DRAWN = ("vgg19-drawn-s1", "resnet101-drawn-s2", "bert-large-drawn-s3")
NAMES = (*(f"{name}-testbed" for name in NETWORKS), *DRAWN, *(f"{name}-two-machines" for name in TWO))
SURE = (0.1, 0.3, 0.5, 0.7, 0.9)
WRONG = (0.025, 0.05, 0.1)
PLAYOUTS = 800
WIDTH = 8


def rater_of(instance, by_speed):
    return PlanRater(instance, ("even", "speed") if by_speed else ("even",))


def base_s(rater):
    return rater.rate(rater.baseline()).time_s


def row_of(rater, solution):
    """The plan with the actions there are, by the rule of model parallelism, nothing duplicated."""
    number = {action: place for place, action in enumerate(rater.actions)}
    row = []
    for plan in solution.groups:
        mode = plan.mode if len(rater.instance.devices_of(plan.device_groups)) > 1 else "all_reduce"
        even = number[Action(plan.device_groups, mode, "even")]
        row.append(number.get(Action(plan.device_groups, mode, plan.split), even))
    return np.array(row)


def walked(rater, clock, seed, start=None):
    """Iterated local search, from a plan as well if one is given; the best row."""
    walk = Walk(rater, clock, np.random.default_rng(seed))
    row, rating = walk.descend(*rater.best_uniform(Clock(Limits(), None)))
    if start is not None:
        row, rating = min((row, rating), walk.descend(start, rater.rate(start)), key=lambda pair: pair[1])
    while not clock.expired:
        offer = walk.kick(row)
        found, found_rating = walk.descend(offer, rater.rate(offer))
        if found_rating <= rating:
            row, rating = found, found_rating
    return rater.best


@cache
def within(name, by_speed, simulations):
    """The best plan known in an action space: local search from the best known plan of all, and from a uniform one."""
    rater = rater_of(load(f"deployment/{name}"), by_speed)
    start = row_of(rater, instances.best(f"deployment/{name}"))
    return walked(rater, Counted(rater, simulations), 0, start), rater.best_rating.time_s


def played(rater, prior, seed, fill="first"):
    """The best of ``PLAYOUTS`` playouts."""
    search = TreeSearch(rater, prior, np.random.default_rng(seed), fill)
    for _ in range(PLAYOUTS):
        search.playout()
    return rater.best_rating.time_s


def median(values):
    return f"{statistics.median(values):.2f}"


def space(asked):
    """What the action spaces contain: best plans known in all, with splits by speed, and in TAG's own."""
    for name in asked.names:
        instance = load(f"deployment/{name}")
        known_s = simulate(instance, instances.best(f"deployment/{name}")).time_s
        rater = rater_of(instance, False)
        found = {label: within(name, label != "TAG", asked.simulations)[1] for label in ("by speed", "TAG")}
        base, uniform = base_s(rater), rater.best_uniform(Clock(Limits(), None))[1].time_s
        yield {
            "instance": name,
            "data parallel": f"{1e3 * base:.2f} ms",
            "known": f"{base / known_s:.2f}",
            **{label: f"{base / seconds:.2f}" for label, seconds in found.items()},
            "TAG's, one action": f"{base / uniform:.2f}",
            "TAG's behind the best": f"{100 * (found['TAG'] / known_s - 1):.1f} %",
        }


def perfect(asked):
    """The best plan of TAG's action space as the prior, surer and surer; then wrong in some groups, with weight 0.7."""
    for name in asked.names:
        instance = load(f"deployment/{name}")
        row, best_s = within(name, False, asked.simulations)
        base = base_s(rater_of(instance, False))
        made = {"instance": name, "best": f"{base / best_s:.2f}"}
        for sure in SURE:
            found = [played(*told(instance, row, sure), seed) for seed in range(asked.seeds)]
            made[f"{sure:g}"] = median(base / seconds for seconds in found)
        for wrong in WRONG:
            rows = [spoilt(instance, row, wrong, seed) for seed in range(asked.seeds)]
            trees = [played(*told(instance, each, 0.7), seed) for seed, each in enumerate(rows)]
            made[f"wrong {100 * wrong:g} %"] = median(base / seconds for seconds in trees)
            said = [rater_of(instance, False).rate(each).time_s for each in rows]
            made[f"said {100 * wrong:g} %"] = median(base / seconds for seconds in said)
        yield made


def told(instance, row, sure):
    """A rater, and the prior that has so much on the actions of a row."""
    rater = rater_of(instance, False)
    count = len(rater.actions)
    table = np.full((len(row), count), (1 - sure) / count)
    table[np.arange(len(row)), row] += sure
    return rater, TablePrior(table)


def spoilt(instance, row, wrong, seed):
    """The row with another action, at random, in a share ``wrong`` of the groups, at least one."""
    rng, count = np.random.default_rng(seed), len(rater_of(instance, False).actions)
    groups = rng.permutation(len(row))[: max(1, round(wrong * len(row)))]
    row = row.copy()
    row[groups] = (row[groups] + rng.integers(1, count, size=len(groups))) % count
    return row


def decoding(asked):
    """Priors without a search and with 800 playouts, beside local search."""
    for name in asked.names:
        instance = load(f"deployment/{name}")
        base = base_s(rater_of(instance, False))
        made = {"instance": name}
        for label in ("uniform", *asked.priors, *asked.weights):
            if label != "uniform":
                said_s = beam(*prior_of(label, instance, asked), 1, Clock(Limits(), None))
                made[f"{stem(label)}, arg max"] = f"{base / said_s:.2f}"
                rater, prior = prior_of(label, instance, asked)
                beam(rater, prior, WIDTH, Clock(Limits(), None))
                made[f"{stem(label)}, beam"] = f"{base / rater.best_rating.time_s:.2f}"
            for fill in ("first", "prior") if label != "uniform" else ("first",):
                found = [played(*prior_of(label, instance, asked), seed, fill) for seed in range(asked.seeds)]
                made[f"{stem(label)}, playouts{', filled' if fill == 'prior' else ''}"] = median(
                    base / s for s in found
                )
        found = []
        for seed in range(asked.seeds):
            rater = rater_of(instance, asked.by_speed)
            walked(rater, Counted(rater, PLAYOUTS), seed)
            found.append(rater.best_rating.time_s)
        made["local search, 800 simulations"] = median(base / s for s in found)
        yield made


def way(asked):
    """What partial plans on the way to the plan of ``graph`` are worth, the other groups doing as the first one."""
    for name in asked.names:
        rater, prior = prior_of("graph", load(f"deployment/{name}"), asked)
        order, base = rater.by_work, base_s(rater)
        row, made = rater.baseline(), {"instance": name}
        for depth, group in enumerate(order):
            action = prior.tables([State(row, order[:depth])])[0, group].argmax()
            row[order[depth:]] = action if depth == 0 else row[order[0]]
            row[group] = action
            made[f"{depth + 1}"] = f"{base / rater.rate(row).time_s:.2f}"
        last = len(order)
        yield {key: made.get(key, "") for key in ("instance", *map(str, asked.decided))} | {"all": made[f"{last}"]}


def imitated(asked):
    """Local search from the best plan that treats all groups alike, and with cuts, after 30 000 simulations."""
    for name in asked.names:
        instance = load(f"deployment/{name}")
        made = {"instance": name}
        for label in ("alike", "cuts"):
            found = []
            for seed in range(asked.seeds):
                rater = rater_of(instance, asked.by_speed)
                if label == "cuts":
                    searched(rater, asked.simulations, seed)
                else:
                    walked(rater, Counted(rater, asked.simulations), seed)
                found.append(base_s(rater) / rater.best_rating.time_s)
            made |= {f"{label}, median": median(found), f"{label}, best": f"{max(found):.2f}"}
        yield made


def agreement(asked):
    """On the way to the plan of the search that is imitated: what ``graph`` says of the next group, the rest as there.

    ``good``: actions with which a step is at most ``asked.good`` longer than the plan's. First the probability of these
    all together, on average and of the group with least, then of how many groups the likeliest action is one.
    """
    for name in asked.names:
        rater, prior = prior_of(asked.weights[0] if asked.weights else "graph", load(f"deployment/{name}"), asked)
        plan, order, row = searched(rater, asked.simulations, 0), rater.by_work, rater.baseline()
        most_s, sure, right = rater.rate(plan).time_s * (1 + asked.good), [], 0
        for depth, group in enumerate(order):
            if depth:
                row = rater.uniform(plan[order[0]])
                row[order[:depth]] = plan[order[:depth]]
            said = prior.tables([State(row, order[:depth])])[0, group]
            good = np.zeros(len(said), dtype=bool)
            for action in range(len(said)):
                offer = plan.copy()
                offer[group] = action
                good[action] = rater.rate(offer).time_s <= most_s
            sure.append(said[good].sum())
            right += good[said.argmax()]
        yield {
            "instance": name,
            "probability": f"{np.mean(sure):.2f}",
            "least": f"{min(sure):.2f}",
            "likeliest is good": f"{right} of {len(order)}",
        }


def stem(label):
    return Path(label).stem


def prior_of(label, instance, asked):
    """A rater, and the prior of that name, or of a file of weights."""
    rater = rater_of(instance, asked.by_speed)
    if label == "uniform":
        return rater, uniform(rater)
    if label.endswith(".npz"):
        with Path(label).open("rb") as stream:
            return rater, GraphPrior(rater, weights_in(stream))
    return rater, prior_named(label, rater, Clock(Limits(), None))


BENCH = Benchmark(
    space, perfect, decoding, way, imitated, agreement,
    names=Option(list(NAMES), "instances", quick=["vgg19-two-machines"]),
    priors=Option(["learned", "graph"], "of the package"),
    weights=Option([], "files of weights, as ddlopt.analysis.lab.plan_prior makes them", type=str),
    decided=Option([1, 10, 20, 25, 30, 35], "groups decided, in ``way``"),
    by_speed=Option(False, "whether the batch may be split by speed"),
    simulations=Option(30_000, "of the local search for the best plan of an action space", quick=2000),
    good=Option(1e-3, "part of the step's time, in ``agreement``"),
    seeds=Option(3, quick=1),
)  # fmt: skip
