"""Numba kernel of the search over aggregation trees: jobs are taken out of the network and sent anew."""

# mypy: disable-error-code="untyped-decorator, no-any-return"

import numpy as np

from ddlopt.models.kernels import inner, kernel
from ddlopt.models.tolerances import ROUNDING
from ddlopt.solvers.aggregation.graph.kernels.forest import (
    DEMAND,
    FOREST,
    RATES,
    UTILIZATION,
    Demand,
    Forest,
    add,
    busiest,
    copy_job,
    objective,
    recomputed,
    remove_job,
    route_job,
    score,
    set_prices,
)
from ddlopt.solvers.aggregation.graph.kernels.messages import NET, RULES, Floats, Ints, Net, Prices, Rules

MOST_JOBS = 3
"""That are taken out together."""
# Largest exponent of the load in prices: beyond it the busiest link is all that counts.
_SHARPEST = 8.0
# By which exponents go below 0, and the width of noise as a power of e, where rates are the goal.
_CROWD, _WIDE = 2.0, 3.0


@inner(inline="always")
def _choose(demand: Demand, forest: Forest, draws: Floats, jobs: Ints) -> int:
    """Write one to three jobs; the first is often one of those on the busiest arc or switch. Returns how many."""
    all_jobs = len(demand.server)
    jobs[0] = int(draws[0] * all_jobs)
    if demand.goal != UTILIZATION and draws[1] < 0.6:
        arc, switch = busiest(forest.link), busiest(forest.switch)
        by_arc = forest.link[arc] >= forest.switch[switch]
        guilty = 0
        for j in range(all_jobs):
            guilty += (forest.messages[j, arc] if by_arc else forest.ended[j, switch]) != 0
        chosen = int(draws[0] * guilty)
        for j in range(all_jobs):
            if (forest.messages[j, arc] if by_arc else forest.ended[j, switch]) != 0:
                if chosen == 0:
                    jobs[0] = j
                chosen -= 1
    count = 1
    for number in range(min(int(draws[2] * MOST_JOBS), all_jobs - 1)):
        other = int(draws[3 + number] * all_jobs)
        if other != jobs[0] and (count < 2 or other != jobs[1]):
            jobs[count] = other
            count += 1
    return count


@kernel(f"({NET}, {DEMAND}, {RULES}, {FOREST}, {FOREST}, {FOREST}, f8[:, ::1], f8[::1])")
def search(
    net: Net, demand: Demand, rules: Rules, now: Forest, best: Forest, before: Forest, draws: Floats, heat: Floats
) -> float:
    """Some rounds: jobs are taken out and sent anew; what is not much worse stays.

    Parameters
    ----------
    now, best : Forest
        Changed in place.
    before : Forest
        Room for ``MOST_JOBS`` trees.
    draws : (rounds, 11 + m + most workers) floats
        Random numbers within 0..1.
    heat : (rounds,) floats
        By which part a score may be worse.

    Returns
    -------
    float
        Goal of ``best``, to be minimised.
    """
    m, n = len(net.tail), len(net.forwards)
    prices, noise, jobs = Prices(np.empty(m), np.empty(n), np.empty(n)), np.empty(m), np.empty(MOST_JOBS, np.int64)
    goal, scale = recomputed(net, demand, best)
    start, _ = recomputed(net, demand, now)
    least = score(demand.goal, now.link, now.switch, start, scale)
    for row in range(len(draws)):
        draw = draws[row]
        count = _choose(demand, now, draw, jobs)
        for place in range(count):
            copy_job(now, jobs[place], before, place)
        for place in range(count):
            remove_job(net, demand, now, jobs[place])
        sharpness = 0.0 if demand.goal == UTILIZATION else _SHARPEST * draw[6]
        if demand.goal == RATES:
            # The sum is large where a few jobs have links for themselves and others crowd together.
            sharpness -= _CROWD
        for a in range(m):
            if demand.goal == RATES:
                noise[a] = np.exp(_WIDE * draw[7] * draw[11 + a])
            else:
                noise[a] = 1.0 + (0.6 * draw[7]) * draw[11 + a]
        opening = 0.0 if draw[8] < 0.5 else 4.0 * (draw[8] - 0.5)
        sent, place = True, 0
        while sent and place < count:
            j = jobs[place]
            set_prices(net, demand, now, j, sharpness, noise, opening, prices)
            # With a hub, where a draw says so, or where there is no tree without.
            tried, sent = 1 if draw[9] < 0.15 else 0, False
            while not sent and tried < 2:
                sent = route_job(net, demand, rules, now, j, prices, draw[11 + m :], draw[10] if tried else -1.0)
                tried += 1
            place += 1
        after, value = np.inf, np.inf
        if sent:
            value = objective(net, demand, now)
            after = score(demand.goal, now.link, now.switch, value, scale)
        if after <= least + heat[row] * abs(least):
            least = after
            if value < goal - ROUNDING * abs(goal):
                goal = value
                for j in range(len(demand.server)):
                    copy_job(now, j, best, j)
        else:
            for place in range(count):
                remove_job(net, demand, now, jobs[place])
            for place in range(count):
                copy_job(before, place, now, jobs[place])
                add(net, demand, now, jobs[place], 1.0)
    return goal
