r"""Places on equal servers as counts: no server has a name, and no two solutions differ by names only.

Let every worker take the same, so that a server of class c has :math:`C_c` places. A job with a ring is *solo*, on one
server, or *spread* over several with a *part* of its workers on each. Servers form groups r that no link but their own
tells apart, with classes c of equal ones in each. With multisets p of widths of solo jobs that fit on a server, and q
of parts that fit and do not overload its link,

.. math::
    & \textstyle\sum_r a_{iwr} + b_{iw} = x_{iw},\qquad \sum_{mr} m\, t_{imr} = \sum_w w\, b_{iw},\qquad
      \sum_{mr} t_{imr} \ge \sum_w \max(2, \lceil w / C \rceil)\, b_{iw} \\
    & \textstyle\sum_i a_{iwr} = \sum_{cp} p_w\, n_{rcp},\qquad
      \sum_{i \in k} t_{imr} = \sum_{cq} q_{mk}\, l_{rcq},\qquad \sum_p n_{rcp} \le S_{rc} \\
    & \textstyle\sum_{q:\, |q| \ge z} l_{rcq} \le \sum_{p:\, C_c - |p| \ge z} n_{rcp} \qquad 1 \le z \le C_c .

a, b are ``solo`` and ``spread``, t the number of ``parts`` of m workers, n and l numbers of servers
(``solo_servers``, ``share_servers``), k kinds of jobs that take the same of a link. The last rows are Hall's: parts of
size z need a rest of that size, so that n and l can be matched. Two parts of a job may come to be on one server; they
are one part then, and take less. Jobs without a ring take what is left (``loose``).

All bin packing is in the enumeration, which is why this is strong; the number of servers is but a right-hand side.
The counting by multisets is Gilmore and Gomory's of cutting stock.
"""

from collections import Counter, defaultdict
from collections.abc import Mapping
from math import ceil
from typing import Any

import pyomo.environ as pyo

from ddlopt.frontier.scheduling.formulations.server_patterns.server_patterns import Pattern, Patterns, ServerClass
from ddlopt.models.linear import linear
from ddlopt.models.scheduling.formulations.slot_embedding.widths import SlotData
from ddlopt.models.scheduling.pool import Workers


def add_patterns(block: pyo.Block, data: SlotData, patterns: Patterns) -> list[tuple[float, Any]]:
    """Add how many servers have each pattern, and what each job takes; returns the terms of the cost of energy.

    Expects ``width[i, w]``. Leaves ``workers[i, r]``, workers of jobs with a ring in group r, if there are several.
    """
    groups = patterns.groups
    classes = [(r, c) for r, group in enumerate(groups) for c in range(len(group))]
    solos = [(r, c, p) for r, c in classes for p in range(len(groups[r][c].solos))]
    # Without the empty one.
    shares = [(r, c, q) for r, c in classes for q in range(1, len(groups[r][c].shares))]
    block.GROUPS = pyo.RangeSet(0, len(groups) - 1, doc="groups of servers")
    block.CLASSES = pyo.Set(dimen=2, initialize=classes, doc="group, class")
    block.SOLO_PATTERNS = pyo.Set(dimen=3, initialize=solos)
    block.SHARE_PATTERNS = pyo.Set(dimen=3, initialize=shares)
    count = {"domain": pyo.NonNegativeIntegers, "bounds": lambda _, r, c, *p: (0, len(groups[r][c].servers))}
    block.solo_servers = pyo.Var(
        block.SOLO_PATTERNS, doc="awake servers that have these widths for themselves", **count
    )
    block.share_servers = pyo.Var(block.SHARE_PATTERNS, doc="servers that have these parts of jobs", **count)
    _add_jobs(block, data, patterns)
    _add_servers(block, patterns)
    _add_loose_workers(block, patterns)
    if len(groups) > 1:
        _add_workers(block, data, patterns)
    return _costs(block, patterns)


def _add_jobs(block: pyo.Block, data: SlotData, patterns: Patterns) -> None:
    """Jobs with a ring are on one server or have parts on several."""
    ringed, gains = list(patterns.kind), data.gains
    sizes = {(i, r): patterns.parts(i, r, data.most(i)) for i in ringed for r in block.GROUPS}
    solo = [(i, w, r) for i in ringed for w in gains[i] for r in block.GROUPS if w <= patterns.most(r)]
    spread = {i: wide for i in ringed if (wide := [w for w in gains[i] if w > 1])}
    block.SOLO = pyo.Set(dimen=3, initialize=solo, doc="job, width that fits on a server, group")
    block.SPREAD = pyo.Set(
        dimen=2, initialize=[(i, w) for i, wide in spread.items() for w in wide], doc="job, width of at least 2"
    )
    block.PARTS = pyo.Set(
        dimen=3,
        initialize=[(i, m, r) for (i, r), own in sizes.items() for m in own],
        doc="job, workers on a server with others elsewhere, group",
    )
    block.solo = pyo.Var(block.SOLO, domain=pyo.Binary, doc="all workers are on one server of the group")
    block.spread = pyo.Var(block.SPREAD, domain=pyo.Binary, doc="workers are on several servers")
    block.parts = pyo.Var(
        block.PARTS,
        domain=pyo.NonNegativeIntegers,
        bounds=lambda _, i, m, r: (0, data.most(i) // m),
        doc="servers of the group that have a given number of the job's workers",
    )
    block.RINGED_WIDTHS = pyo.Set(dimen=2, initialize=[(i, w) for i in ringed for w in gains[i]])

    def parts_of(b: Any, i: int) -> list[tuple[int, Any]]:
        return [(m, b.parts[i, m, r]) for r in b.GROUPS for m in sizes[i, r]]

    @block.Constraint(block.RINGED_WIDTHS, doc="a job is on one server of some group, or on several")
    def width_is_solo_or_spread(b: Any, i: int, w: int) -> Any:
        terms = [(1.0, b.solo[i, w, r]) for r in b.GROUPS if (i, w, r) in b.SOLO]
        return linear([*terms, *((1.0, b.spread[i, w]) for _ in range(w > 1)), (-1.0, b.width[i, w])]) == 0

    block.SPREADING = pyo.Set(initialize=sorted(spread), doc="jobs that may be on several servers")

    @block.Constraint(block.SPREADING, doc="parts add up to the width")
    def parts_make_the_width(b: Any, i: int) -> Any:
        terms = [(float(m), part) for m, part in parts_of(b, i)]
        return linear([*terms, *((-float(w), b.spread[i, w]) for w in spread[i])]) == 0

    @block.Constraint(
        block.SPREADING, doc="a job has two parts at least, and as many as the largest servers make necessary"
    )
    def parts_are_several(b: Any, i: int) -> Any:
        largest = max(map(patterns.most, b.GROUPS))
        terms = [(1.0, part) for _, part in parts_of(b, i)]
        return linear([*terms, *((-float(max(2, ceil(w / largest))), b.spread[i, w]) for w in spread[i])]) >= 0


def _add_servers(block: pyo.Block, patterns: Patterns) -> None:
    """Servers have patterns, which hold the jobs' workers and fit together."""
    groups, kind = patterns.groups, patterns.kind
    block.SOLO_WIDTHS = pyo.Set(dimen=2, initialize=sorted({(w, r) for _, w, r in block.SOLO}), doc="width, group")

    @block.Constraint(block.SOLO_WIDTHS, doc="solo jobs of a width are what patterns have of it")
    def solos_have_servers(b: Any, w: int, r: int) -> Any:
        jobs = [(1.0, b.solo[i, w, r]) for i in kind if (i, w, r) in b.SOLO]
        held = [
            (-float(times), b.solo_servers[r, c, p])
            for c, one in enumerate(groups[r])
            for p, solo in enumerate(one.solos)
            if (times := solo.count(w))
        ]
        return linear([*jobs, *held]) == 0

    block.PART_SIZES = pyo.Set(
        dimen=3, initialize=sorted({(m, kind[i], r) for i, m, r in block.PARTS}), doc="workers, kind of job, group"
    )

    @block.Constraint(block.PART_SIZES, doc="parts of a size of jobs of a kind are what patterns have of them")
    def parts_have_servers(b: Any, m: int, k: int, r: int) -> Any:
        jobs = [(1.0, b.parts[i, m, r]) for i, own in kind.items() if own == k and (i, m, r) in b.PARTS]
        held = [
            (-float(times), b.share_servers[r, c, q])
            for c, one in enumerate(groups[r])
            for q, share in enumerate(one.shares)
            if (times := share.count((m, k)))
        ]
        return linear([*jobs, *held]) == 0

    @block.Constraint(
        block.CLASSES,
        doc="a server has one pattern of solo jobs, maybe that of none; if it has none at all, it is asleep",
    )
    def servers_are_enough(b: Any, r: int, c: int) -> Any:
        terms = [(1.0, b.solo_servers[r, c, p]) for p, _ in _solos(patterns, r, c)]
        return linear(terms) <= len(groups[r][c].servers)

    block.RESTS = pyo.Set(
        dimen=3,
        initialize=[(r, c, size) for r, c in block.CLASSES for size in range(1, groups[r][c].places + 1)],
        doc="group, class, places left by solo jobs",
    )

    @block.Constraint(
        block.RESTS, doc="servers with parts that need s places are at most those where solo jobs leave s"
    )
    def parts_fit_the_rest(b: Any, r: int, c: int, size: int) -> Any:
        places = groups[r][c].places
        shares = [(1.0, b.share_servers[r, c, q]) for q, total in _shares(patterns, r, c) if total >= size]
        rests = [(-1.0, b.solo_servers[r, c, p]) for p, total in _solos(patterns, r, c) if places - total >= size]
        return linear([*shares, *rests]) <= 0 if shares else pyo.Constraint.Skip


def _add_loose_workers(block: pyo.Block, patterns: Patterns) -> None:
    """Workers of jobs without a ring are on what is left of servers that are awake."""
    block.loose = pyo.Var(block.CLASSES, bounds=(0, None), doc="workers of jobs without a ring")

    @block.Constraint(doc="workers without a ring may be anywhere")
    def loose_workers_have_servers(b: Any) -> Any:
        jobs = [(float(w), b.width[i, w]) for i, w in b.WIDTHS if i not in patterns.kind]
        return linear([*jobs, *((-1.0, b.loose[rc]) for rc in b.CLASSES)]) == 0

    @block.Constraint(block.CLASSES, doc="workers without a ring take what the others leave of servers that are awake")
    def loose_workers_fit(b: Any, r: int, c: int) -> Any:
        places = patterns.groups[r][c].places
        rests = [(float(total - places), b.solo_servers[r, c, p]) for p, total in _solos(patterns, r, c)]
        taken = [(float(total), b.share_servers[r, c, q]) for q, total in _shares(patterns, r, c)]
        return linear([*rests, *taken, (1.0, b.loose[r, c])]) <= 0


def _add_workers(block: pyo.Block, data: SlotData, patterns: Patterns) -> None:
    """How many workers a job with a ring has in each group."""
    held = {
        (i, r): [(float(w), block.solo[i, w, r]) for w in data.gains[i] if (i, w, r) in block.SOLO]
        + [(float(m), block.parts[i, m, r]) for m in patterns.parts(i, r, data.most(i))]
        for i in patterns.kind
        for r in block.GROUPS
    }
    block.PLACES = pyo.Set(
        dimen=2,
        initialize=[pair for pair, terms in held.items() if terms],
        doc="job with a ring, group that holds workers of it",
    )
    block.workers = pyo.Var(block.PLACES, bounds=lambda _, i, r: (0, data.most(i)), doc="of the job in the group")

    @block.Constraint(block.PLACES, doc="workers in a group are solo or parts")
    def workers_are_solo_or_parts(b: Any, i: int, r: int) -> Any:
        return linear([*held[i, r], (-1.0, b.workers[i, r])]) == 0


def _costs(block: Any, patterns: Patterns) -> list[tuple[float, Any]]:
    """Terms of the cost of energy."""
    found = []
    for r, c in block.CLASSES:
        one = patterns.groups[r][c]
        if one.worker_cost or one.idle_cost:
            for p, total in _solos(patterns, r, c):
                found.append((one.idle_cost + one.worker_cost * total, block.solo_servers[r, c, p]))
            for q, total in _shares(patterns, r, c):
                found.append((one.worker_cost * total, block.share_servers[r, c, q]))
            found.append((one.worker_cost, block.loose[r, c]))
    return found


def _solos(patterns: Patterns, r: int, c: int) -> list[tuple[int, int]]:
    """Place and workers of each pattern of solo jobs."""
    return [(p, sum(solo)) for p, solo in enumerate(patterns.groups[r][c].solos)]


def _shares(patterns: Patterns, r: int, c: int) -> list[tuple[int, int]]:
    """Place and workers of each pattern of parts, without the empty one."""
    return [(q, _total(share)) for q, share in enumerate(patterns.groups[r][c].shares) if q]


def _total(share: Pattern) -> int:
    return sum(m for m, _ in share)


def read_patterns(block: pyo.Block, data: SlotData, patterns: Patterns, value: Any) -> dict[int, Workers]:
    """Workers of every job on servers that have the patterns.

    Parameters
    ----------
    value : callable
        The whole number that a variable has.
    """
    counts: dict[int, Counter[int]] = defaultdict(Counter)
    loose = [i for i in data.gains if i not in patterns.kind]
    wanted = {i: sum(w for w in data.gains[i] if value(block.width[i, w])) for i in loose}
    for r, group in enumerate(patterns.groups):
        solos: dict[int, list[int]] = defaultdict(list)
        shares: dict[Any, list[int]] = defaultdict(list)
        for c, one in enumerate(group):
            room = _open_servers(block, r, c, one, solos, shares, value)
            spare = round(block.loose[r, c].value or 0.0)
            for server, places in room.items():
                for i in loose:
                    count = min(places, spare, wanted[i])
                    counts[i][server] += count
                    places, spare, wanted[i] = places - count, spare - count, wanted[i] - count
        for i, w, where in block.SOLO:
            if where == r and value(block.solo[i, w, r]):
                counts[i][solos[w].pop()] += w
        for i, m, where in block.PARTS:
            if where == r:
                for _ in range(value(block.parts[i, m, r])):
                    counts[i][shares[m, patterns.kind[i]].pop()] += m
    return {i: there for i in data.gains if (there := tuple(sorted((+counts[i]).items())))}


def _open_servers(
    block: pyo.Block,
    r: int,
    c: int,
    one: ServerClass,
    solos: dict[int, list[int]],
    shares: dict[Any, list[int]],
    value: Any,
) -> dict[int, int]:
    """Give patterns to servers, those with large rests large parts; what is left of each server that is awake."""
    free = [
        (one.places - sum(solo), solo)
        for p, solo in enumerate(one.solos)
        for _ in range(value(block.solo_servers[r, c, p]))
    ]
    parts = [
        (_total(share), share)
        for q, share in enumerate(one.shares)
        if q
        for _ in range(value(block.share_servers[r, c, q]))
    ]
    room: dict[int, int] = {}
    free.sort(key=lambda pair: -pair[0])
    parts.sort(key=lambda pair: -pair[0])
    for place, (server, (left, solo)) in enumerate(zip(one.servers, free, strict=False)):
        total, share = parts[place] if place < len(parts) else (0, ())
        room[server] = left - total
        for width in solo:
            solos[width].append(server)
        for what in share:
            shares[what].append(server)
    return room


def start_patterns(block: pyo.Block, data: SlotData, patterns: Patterns, workers: Mapping[int, Workers]) -> None:
    """Give the variables the values of workers by job."""
    group_of = patterns.group_of
    solo: dict[int, list[int]] = defaultdict(list)
    share: dict[int, list[tuple[int, int]]] = defaultdict(list)
    spare: Counter[int] = Counter()
    values: Counter[tuple[str, Any]] = Counter()
    for i, there in workers.items():
        width = sum(count for _, count in there)
        if i in patterns.kind and len(there) > 1:
            values["spread", (i, width)] = 1
        for server, count in there:
            if i not in patterns.kind:
                spare[server] += count
            elif len(there) == 1:
                solo[server].append(width)
                values["solo", (i, width, group_of[server])] = 1
            else:
                share[server].append((count, patterns.kind[i]))
                values["parts", (i, count, group_of[server])] += 1
            if i in patterns.kind:
                values["workers", (i, group_of[server])] += count
    for r, c in block.CLASSES:
        one = patterns.groups[r][c]
        for server in one.servers:
            if server in solo or server in share or server in spare:
                values["solo_servers", (r, c, one.solos.index(tuple(sorted(solo[server]))))] += 1
            if server in share:
                values["share_servers", (r, c, one.shares.index(tuple(sorted(share[server]))))] += 1
            values["loose", (r, c)] += spare[server]
    for name in ("solo", "spread", "parts", "workers", "solo_servers", "share_servers", "loose"):
        component = block.component(name)
        for key in component or ():
            component[key].set_value(values[name, key], skip_validation=True)
