"""The multicommodity linear program of a fixed network, written out in full: an oracle that knows no symmetry."""

from math import inf
from operator import itemgetter

import numpy as np
import scipy.sparse as sp
from brute_force import link_choices
from scipy.optimize import linprog
from scipy.sparse.csgraph import shortest_path


def best_routing(instance, counts):
    """The least load of the busiest link over given links for the traffic; inf if somebody cannot be reached."""
    n, arcs, traffic = instance.servers, list(counts), instance.traffic_bytes
    m = len(arcs)
    node_arc = sp.lil_matrix((n, m))
    for a, (i, j) in enumerate(arcs):
        node_arc[i, a] += 1
        node_arc[j, a] -= 1
    supply = np.diag(traffic.sum(axis=1)) - traffic
    balance = sp.hstack([sp.block_diag([node_arc] * n), sp.csr_matrix((n * n, 1))])
    load = sp.hstack(
        [sp.hstack([sp.eye(m)] * n), -sp.csr_matrix(np.array(list(counts.values()), dtype=float)[:, None])]
    )
    cost = np.zeros(n * m + 1)
    cost[-1] = 1
    upper = [None] * (n * m + 1)
    if not instance.host_forwarding:
        upper[:-1] = [None if arc[0] == s else 0.0 for s in range(n) for arc in arcs]
    bounds = [(0, top) for top in upper]
    found = linprog(cost, load, np.zeros(m), balance, supply.ravel(), bounds=bounds, method="highs")
    return found.fun if found.status == 0 else inf


def best_links_and_routing(instance):
    """The least load over any links; a program only of those whose bytes times hops allow less than the best yet."""
    best = inf
    for least, counts in sorted(
        ((least_load(instance, each), each) for each in link_choices(instance)), key=itemgetter(0)
    ):
        if least >= best:
            break
        best = min(best, best_routing(instance, counts))
    return best


def least_load(instance, counts):
    """Bytes times hops over links: no routing loads the busiest link less; inf if somebody cannot be reached."""
    links = np.zeros((instance.servers, instance.servers))
    links[tuple(np.array(list(counts)).T)] = 1
    hops, sends = shortest_path(links, unweighted=True), instance.traffic_bytes > 0
    return float((instance.traffic_bytes[sends] * hops[sends]).sum()) / sum(counts.values())
