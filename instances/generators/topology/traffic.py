"""Traffic without a training job behind it. Every function returns the fields of an instance that it decides."""

from typing import Any

import numpy as np

from ddlopt.models.errors import OptionError

Fields = dict[str, Any]


def all_to_all(servers: int, degree: int, rng: np.random.Generator, bytes_per_pair: float = 1.0) -> Fields:
    """The same for every pair.

    Parameters
    ----------
    bytes_per_pair : float
        What a server sends to each server that it sends to.
    """
    return {"traffic_bytes": bytes_per_pair * (1 - np.eye(servers))}


def ring(servers: int, degree: int, rng: np.random.Generator, stride: int = 1, bytes_per_pair: float = 1.0) -> Fields:
    """Each server sends to the one ``stride`` further.

    Parameters
    ----------
    stride : int
        How far; no multiple of the number of servers.
    """
    if stride % servers == 0:
        raise OptionError(f"stride is {stride}, which leads each of {servers} servers to itself; use 1..{servers - 1}")
    traffic = np.zeros((servers, servers))
    traffic[np.arange(servers), (np.arange(servers) + stride) % servers] = bytes_per_pair
    return {"traffic_bytes": traffic}


def permutation(servers: int, degree: int, rng: np.random.Generator, bytes_per_pair: float = 1.0) -> Fields:
    """Each server sends to one other and receives from one other; uniform among permutations without fixed point."""
    targets = rng.permutation(servers)
    while (targets == np.arange(servers)).any():
        targets = rng.permutation(servers)
    traffic = np.zeros((servers, servers))
    traffic[np.arange(servers), targets] = bytes_per_pair
    return {"traffic_bytes": traffic}


def random(
    servers: int,
    degree: int,
    rng: np.random.Generator,
    density: float = 1.0,
    mean_bytes: float = 10.0,
    shape: float = 10.0,
) -> Fields:
    """Gamma-distributed bytes, rounded to integers of at least 1, for a random part of the pairs.

    The defaults resemble MIPLIB's danoint, whose entries have mean 9.9 and standard deviation 2.9.

    Parameters
    ----------
    density : float
        Part of the pairs of servers that have traffic, above 0 and at most 1.
    mean_bytes : float
        Mean of the distribution.
    shape : float
        Shape of the distribution: with 1 it is exponential, the larger the more equal.
    """
    return {"traffic_bytes": _gamma(servers, rng, density, mean_bytes, shape)}


def hybrid(
    servers: int,
    degree: int,
    rng: np.random.Generator,
    group_size: int | None = None,
    gradient_bytes: float = 1e9,
    group_gradient_bytes: float = 5e8,
    density: float = 0.25,
    mean_bytes: float = 5e7,
    shape: float = 1.0,
) -> Fields:
    """A job that is parallel in data and in model: nested all-reduce groups and sparse traffic between layers.

    All servers reduce ``gradient_bytes``; each coset {s, s + n/k, s + 2n/k, …} of ``group_size`` = k servers (half of
    them by default) reduces ``group_gradient_bytes``; a random part of the pairs exchanges gamma-distributed bytes.

    Parameters
    ----------
    group_size : int, optional
        Servers of a group, a divisor of all; half of them by default.
    gradient_bytes, group_gradient_bytes : float
        What all servers reduce, and what each group reduces.
    """
    k = servers // 2 if group_size is None else group_size
    if not 2 <= k <= servers or servers % k:
        raise OptionError(
            f"group_size is {k}, but equal groups of {servers} servers need a divisor of {servers} above 1"
        )
    step = servers // k
    groups = [{"members": list(range(servers)), "gradient_bytes": gradient_bytes}]
    if step > 1:
        cosets = (list(range(first, servers, step)) for first in range(step))
        groups += [{"members": coset, "gradient_bytes": group_gradient_bytes} for coset in cosets]
    return {
        "link_bandwidth_bytes_per_s": 12.5e9,
        "allreduce_groups": groups,
        "traffic_bytes": _gamma(servers, rng, density, mean_bytes, shape),
    }


def _gamma(servers: int, rng: np.random.Generator, density: float, mean_bytes: float, shape: float) -> Any:
    """Random bytes for round(density · pairs) pairs, at least one."""
    if not 0 < density <= 1:
        raise OptionError(f"density is {density}; the part of the pairs with traffic is above 0 and at most 1")
    for name, value in (("mean_bytes", mean_bytes), ("shape", shape)):
        if not 0 < value < np.inf:
            raise OptionError(f"{name} is {value}; it must be positive and finite")
    pairs = servers * (servers - 1)
    chosen = rng.permutation(pairs)[: max(1, round(density * pairs))]
    amounts = np.zeros(pairs)
    amounts[chosen] = np.maximum(1, np.rint(rng.gamma(shape, mean_bytes / shape, len(chosen))))
    traffic = np.zeros((servers, servers))
    traffic[~np.eye(servers, dtype=bool)] = amounts
    return traffic
