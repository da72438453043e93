"""Compiled: the best place of every job at given prices, over nested cuts."""

# mypy: disable-error-code="untyped-decorator"

import numpy as np
import numpy.typing as npt

from ddlopt.models.kernels import kernel

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]


@kernel("(f8[:, ::1], f8[:, ::1], f8[:, ::1], i8[:, ::1], i8[::1], i8[::1])")
def best_places(
    gains: Floats,
    worker_price: Floats,
    cut_price: Floats,
    room: Ints,
    starts: Ints,
    items: Ints,
) -> tuple[Floats, Ints, Ints]:
    """For every job the width and the places of largest gain less price.

    Cut u pays once if it holds some, but not all workers of a job. With every cut paid that holds a worker, the cost of
    k workers in a cut is a sum over what is directly within it, for all k at once by merging these one by one. The
    smallest cut that holds all workers is not paid, nor are those around it, so that the least over all cuts is right.

    Parameters
    ----------
    gains : (J, N + 1) array
        By width; -inf where a job may not have it.
    worker_price : (J, S) array
        Of each worker on each server.
    cut_price : (J, U) array
        Of each cut, infinite where the job may not be split; that of the last cut, the whole cluster, does not matter.
    room : (J, S) array
        Workers that a server holds.
    starts : (U + 1,) array
    items : array
        ``items[starts[u]:starts[u + 1]]`` is what is directly within cut u: server s as s, cut v < u as S + v.

    Returns
    -------
    (J,), (J,), (J, S) arrays
        Gain less price, width, and workers; 0 where no width has a positive one.
    """
    jobs, servers = worker_price.shape
    cuts = len(starts) - 1
    most = gains.shape[1] - 1
    value = np.zeros(jobs)
    width = np.zeros(jobs, np.int64)
    places = np.zeros((jobs, servers), np.int64)
    cost = np.empty((cuts, most + 1))
    taken = np.zeros((len(items), most + 1), np.int64)
    left = np.zeros(cuts, np.int64)
    for job in range(jobs):
        for u in range(cuts):
            own = cost[u]
            own[:] = np.inf
            own[0] = 0.0
            for place in range(starts[u], starts[u + 1]):
                item = items[place]
                for k in range(most, -1, -1):
                    best, amount = own[k], 0
                    for some in range(1, k + 1):
                        if item < servers:
                            if some > room[job, item]:
                                break
                            price = some * worker_price[job, item]
                        else:
                            price = cost[item - servers, some] + cut_price[job, item - servers]
                        if own[k - some] + price < best:
                            best, amount = own[k - some] + price, some
                    own[k] = best
                    taken[place, k] = amount
        home = -1
        for u in range(cuts):
            for k in range(1, most + 1):
                if gains[job, k] - cost[u, k] > value[job]:
                    value[job], width[job], home = gains[job, k] - cost[u, k], k, u
        if home < 0:
            continue
        left[:] = 0
        left[home] = width[job]
        for u in range(home, -1, -1):
            k = left[u]
            for place in range(starts[u + 1] - 1, starts[u] - 1, -1):
                amount = taken[place, k]
                if amount and items[place] < servers:
                    places[job, items[place]] = amount
                elif amount:
                    left[items[place] - servers] = amount
                k -= amount
    return value, width, places
