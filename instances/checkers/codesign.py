"""Checks a plan for a job and its links in rational numbers: python codesign.py INSTANCE SOLUTION.

A strategy for each layer says which servers compute how long, what they hold in memory, what compression loses, and
what must be all-reduced or sent; between a layer and one that reads it with another layout, every sample's every
channel goes from the server that has it to the one that wants it, and its gradient back. Bytes of a group or a pair of
servers are added up in double precision, in the order of the layers, then of the edges. Links, rings and routes are
checked as those of a topology.
"""

import gzip
import json
import math
import sys
from fractions import Fraction as F


def need(holds, what):
    """Raise ValueError where a file is no answer at all."""
    if not holds:
        raise ValueError(what)


def bytes_between(data):
    """Traffic by (source, target): from rows of a matrix, or from {"size": n, "entries": [[i, j, bytes], …]}."""
    if isinstance(data, dict):
        return {(i, j): value for i, j, value in data["entries"] if value}
    return {(i, j): value for i, row in enumerate(data) for j, value in enumerate(row) if value}


def read_design(design):
    """Lists of the design, empty where they are left out."""
    rings, routes = design.get("rings", []), design.get("routes", [])
    for ring in rings:
        need(ring["group"] >= 0, "ring.group is at least 0")
        need(ring["share"] > 0, "ring.share is above 0")
    return design["links"], design.get("planes", []), rings, routes


def check_links(instance, design, broken):
    """Ends, degrees, parallel links and planes; the number of links of each ordered pair, and whether loads exist."""
    n, degree = instance["servers"], instance["degree"]
    duplex = instance.get("optics", "one_way") == "duplex"
    links, planes, _, _ = read_design(design)
    counts, leaving, entering, laid, fine = {}, [0] * n, [0] * n, {}, True
    for place, (i, j, count) in enumerate(links):
        where = f"links[{place}]"
        for end in (i, j):
            if not 0 <= end < n:
                broken.append(("server_exists", where))
                fine = False
        if i == j:
            broken.append(("no_link_to_itself", where))
        if duplex and i > j:
            broken.append(("duplex_pair_is_ordered", where))
        if count < 1:
            broken.append(("count_is_positive", where))
            fine = False
        for pair in [(i, j), (j, i)] if duplex else [(i, j)]:
            counts[pair] = counts.get(pair, 0) + count
        laid[i, j] = laid.get((i, j), 0) + count
        if 0 <= i < n:
            leaving[i] += count
        if 0 <= j < n:
            entering[j] += count
    for server in range(n):
        if duplex and leaving[server] + entering[server] > degree:
            broken.append(("degree", f"server {server}"))
        if not duplex and leaving[server] > degree:
            broken.append(("out_degree", f"server {server}"))
        if not duplex and entering[server] > degree:
            broken.append(("in_degree", f"server {server}"))
    if not instance.get("parallel_links", True):
        for (i, j), count in counts.items():
            if count > 1 and (i < j or not duplex):
                broken.append(("no_parallel_links", f"servers {i} and {j}"))
    if planes or duplex:
        check_planes(degree, duplex, planes, laid, broken)
    return counts, fine


def check_planes(degree, duplex, planes, laid, broken):
    """Each plane joins a server at most once; together they hold the links and nothing else."""
    if len(planes) > degree:
        broken.append(("planes_suffice", "planes"))
    shown = {}
    for place, plane in enumerate(planes):
        tails, heads = [i for i, _ in plane], [j for _, j in plane]
        for ends in [tails + heads] if duplex else [tails, heads]:
            for server in set(ends):
                if ends.count(server) > 1:
                    broken.append(("plane_is_a_matching", f"planes[{place}], server {server}"))
        for i, j in plane:
            shown[i, j] = shown.get((i, j), 0) + 1
    for pair in set(shown) | set(laid):
        if shown.get(pair, 0) != laid.get(pair, 0):
            broken.append(("planes_hold_the_links", f"pair {pair}"))


def parts_of_one(kind, values, where, broken):
    """Shares that must sum to 1 within 1e-6; the largest of them then takes what the others leave."""
    parts = [F(value) for value in values]
    broken += [("share_is_not_negative", where) for part in parts if part < 0]
    total = sum(parts, F(0))
    if abs(float(total - 1)) > 1e-6:  # as `evaluate` allows: shares are written with rounding
        broken.append((kind, where))
    if parts:
        parts[parts.index(max(parts))] += 1 - total
    return parts


def check_path(path, source, target, where, counts, forwarding, broken):
    """A path from source to target over links; whether its load is known."""
    if len(path) < 2 or path[0] != source or path[-1] != target:
        broken.append(("path_joins_its_ends", where))
        return False
    fine = True
    for hop in zip(path, path[1:]):
        if not counts.get(tuple(hop)):
            broken.append(("path_follows_links", f"{where}: hop {hop[0]} -> {hop[1]}"))
            fine = False
    if not forwarding and len(path) > 2:
        broken.append(("nobody_forwards", where))
    return fine


def busiest_link(instance, groups, traffic, design, broken):
    """Bytes on a link of the pair of servers that has most of them per link; None where a path leaves the links.

    ``groups``: (members, bytes) of the all-reduces. ``traffic``: bytes by (source, target).
    """
    n, forwarding = instance["servers"], instance.get("host_forwarding", True)
    counts, fine = check_links(instance, design, broken)
    _, _, rings, routes = read_design(design)
    carried = []  # (path, bytes)
    for place, ring in enumerate(rings):
        if ring["group"] >= len(groups):
            broken.append(("ring_has_a_group", f"rings[{place}]"))
    for group, (members, size) in enumerate(groups):
        k = len(members)
        own = [(place, ring) for place, ring in enumerate(rings) if ring["group"] == group]
        where = f"allreduce_groups[{group}]"
        shares = parts_of_one("ring_shares_sum_to_one", [ring["share"] for _, ring in own], where, broken)
        fine = fine and bool(own)
        for (place, ring), share in zip(own, shares):
            order, paths = ring["members"], ring["paths"]
            if sorted(order) != list(members):
                broken.append(("ring_visits_its_group_once", f"rings[{place}]"))
                fine = False
            elif len(paths) != k:
                broken.append(("ring_has_a_path_per_hop", f"rings[{place}]"))
                fine = False
            else:
                for hop, path in enumerate(paths):
                    ends = order[hop], order[(hop + 1) % k]
                    fine &= check_path(path, *ends, f"rings[{place}].paths[{hop}]", counts, forwarding, broken)
                    carried.append((path, share * F(size) * 2 * (k - 1) / k))
    taken = {}
    for place, route in enumerate(routes):
        source, target, paths, fractions = route["source"], route["target"], route["paths"], route["fractions"]
        if not (0 <= source < n and 0 <= target < n):
            broken.append(("server_exists", f"routes[{place}]"))
        elif len(paths) != len(fractions):
            broken.append(("path_has_a_fraction", f"routes[{place}]"))
            fine = False
        else:
            for number, path in enumerate(paths):
                fine &= check_path(path, source, target, f"routes[{place}].paths[{number}]", counts, forwarding, broken)
            taken.setdefault((source, target), []).extend(zip(paths, fractions))
    for pair, size in traffic.items():
        own = taken.get(pair, [])
        where = f"traffic {pair[0]} -> {pair[1]}"
        shares = parts_of_one("traffic_is_routed", [fraction for _, fraction in own], where, broken)
        fine = fine and bool(own)
        carried += [(path, share * F(size)) for (path, _), share in zip(own, shares)]
    if not fine:
        return None
    loads = {}
    for path, size in carried:
        for hop in zip(path, path[1:]):
            loads[hop] = loads.get(hop, 0) + size
    return max((load / counts[hop] for hop, load in loads.items()), default=F(0))


def iteration_s(instance, compute, load):
    """Time of an iteration when a link carries at most ``load`` bytes."""
    communication = load / F(instance["link_bandwidth_bytes_per_s"])
    return max(compute, communication) if instance.get("overlap", "none") == "full" else compute + communication


def check(instance, solution):
    """The objective in seconds, None where there is none, and (rule, where) of what is broken."""
    layers, names = instance["layers"], solution["strategies"]
    read_design(solution["design"])
    if len(names) != len(layers):
        return None, [("layer_has_a_strategy", "strategies")]
    chosen = []
    for layer, name in zip(layers, names):
        found = [strategy for strategy in layer["strategies"] if strategy["name"] == name]
        if not found:
            return None, [("strategy_exists", f"layer '{layer['name']}'")]
        chosen.append(found[0])
    broken = check_memory(instance, chosen)
    error, budget = sum((F(strategy.get("error", 0)) for strategy in chosen), F(0)), instance.get("error_budget")
    if budget is not None and error > F(budget) * (1 + F(1e-9)):  # as `evaluate` allows: sums are rounded
        broken.append(("error_budget_is_kept", "all layers"))
    compute = compute_s(instance, chosen)
    groups, traffic = what_is_sent(instance, chosen)
    if not groups and not traffic:
        check_links(instance, solution["design"], broken)
        broken += [
            ("ring_has_a_group", f"rings[{place}]") for place, _ in enumerate(solution["design"].get("rings", []))
        ]
        return iteration_s(instance, compute, F(0)), broken
    load = busiest_link(instance, groups, traffic, solution["design"], broken)
    return None if load is None else iteration_s(instance, compute, load), broken


def servers_of(instance, strategy):
    """Where the layer runs."""
    return instance["layouts"][strategy["writes"]]["servers"]


def check_memory(instance, chosen):
    """Servers that hold more than they can."""
    taken, limit = [0.0] * instance["servers"], instance["device"].get("memory_bytes")
    for strategy in chosen:
        for server in servers_of(instance, strategy):
            taken[server] += strategy.get("memory_bytes", 0.0)
    # As `evaluate` allows: sums are rounded.
    full = [server for server, amount in enumerate(taken) if limit is not None and amount > limit * (1 + 1e-9)]
    return [("memory_suffices", f"server {server}") for server in full]


def compute_s(instance, chosen):
    """The busiest server's time, or the longest path through the layers if that is longer."""
    device, times = instance["device"], []
    for layer, strategy in zip(instance["layers"], chosen):
        if strategy.get("measured_s") is not None:
            times.append(F(strategy["measured_s"]) + F(strategy.get("encoding_s", 0)))
        else:
            rate = device["convolution_flops_per_s" if layer.get("convolution") else "flops_per_s"]
            by_memory = F(strategy.get("moved_bytes", 0)) / F(device["memory_bytes_per_s"])
            by_operations = F(strategy.get("flops", 0)) / F(rate)
            times.append(max(by_operations, by_memory) + F(strategy.get("encoding_s", 0)))
    busy = [F(0)] * instance["servers"]
    for strategy, time in zip(chosen, times):
        for server in servers_of(instance, strategy):
            busy[server] += time
    edges, finish = instance.get("edges", []), {}
    before = {layer: [source for source, target in edges if target == layer] for layer in range(len(times))}
    while len(finish) < len(times):
        for layer, sources in before.items():
            if layer not in finish and all(source in finish for source in sources):
                finish[layer] = max((finish[source] for source in sources), default=F(0)) + times[layer]
    return max(*busy, *finish.values())


def what_is_sent(instance, chosen):
    """All-reduces (members, bytes), larger groups first, and bytes by (source, target)."""
    reduced, traffic = {}, {}
    for strategy in chosen:
        for reduction in strategy.get("reductions", []):
            for group in instance["group_sets"][reduction["groups"]]:
                reduced[tuple(group)] = reduced.get(tuple(group), 0.0) + reduction["bytes"]
        for source, target, size in strategy.get("traffic", []):
            traffic[source, target] = traffic.get((source, target), 0.0) + size
    for source, target in instance.get("edges", []):
        written = instance["layouts"][chosen[source]["writes"]]
        read = instance["layouts"][chosen[target]["reads"]]
        moved, size = parts_moved(written, read), instance["layers"][source].get("output_bytes", 0.0)
        for pair in set(moved) | {(j, i) for i, j in moved}:
            both = moved.get(pair, 0.0) + moved.get(pair[::-1], 0.0)  # forward, and gradients back
            traffic[pair] = traffic.get(pair, 0.0) + size * both
    groups = sorted(reduced, key=lambda members: (-len(members), members))
    return [(members, reduced[members]) for members in groups], {pair: size for pair, size in traffic.items() if size}


def parts_moved(written, read):
    """Parts of an activation by the server that wrote them and another one that reads them."""
    cuts = []
    for axis in ("batch_parts", "channel_parts"):
        one, other = written.get(axis, 1), read.get(axis, 1)
        cells = math.lcm(one, other)
        a, b = cells // one, cells // other
        common = [[max(0, min((i + 1) * a, (j + 1) * b) - max(i * a, j * b)) for j in range(other)] for i in range(one)]
        cuts.append((common, cells))
    (batch, samples), (channel, features) = cuts
    found = {}
    for place, source in enumerate(written["servers"]):
        for there, target in enumerate(read["servers"]):
            i, p = divmod(place, written.get("channel_parts", 1))
            j, q = divmod(there, read.get("channel_parts", 1))
            cells = batch[i][j] * channel[p][q]
            if source != target and cells:
                found[source, target] = cells / float(samples * features)
    return found


def main():
    """Print the objective and every rule that is broken; exit code 0 if none is, 1 if one is, 2 for no answer."""
    if len(sys.argv) != 3:
        sys.exit(f"usage: python {sys.argv[0]} INSTANCE SOLUTION, each a .json or .json.gz file")
    documents = []
    for name in sys.argv[1:]:
        with gzip.open(name, "rt", encoding="utf-8") if name.endswith(".gz") else open(name, encoding="utf-8") as file:
            documents.append(json.load(file))
    instance, solution = documents
    if solution.get("format") == "ddlopt submission":
        solution = solution["solution"]
    try:
        objective, broken = check(instance, solution)
    except (AttributeError, IndexError, KeyError, TypeError, ValueError, ZeroDivisionError) as problem:
        print(f"this is no answer to the problem: {type(problem).__name__}: {problem}")
        sys.exit(2)
    print("objective:", "none" if objective is None else f"{objective} ({float(objective):.12g})")
    for rule, where in broken:
        print(f"broken: {rule}: {where}")
    feasible = objective is not None and not broken
    print("feasible" if feasible else "not feasible")
    sys.exit(0 if feasible else 1)


if __name__ == "__main__":
    main()
