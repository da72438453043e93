"""Small co-design jobs without a network behind them: every feature of the family, figures of the order of a second."""

import itertools
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from ddlopt.instances.options import at_least, one_of, part, positive
from ddlopt.models.codesign import CodesignInstance

Groups = tuple[tuple[int, ...], ...]
_OPTICS, _OVERLAPS = ("one_way", "duplex"), ("none", "full")


@dataclass(frozen=True)
class _Rates:
    """What is drawn for each strategy, and how often."""

    mean_bytes: float
    reduction: float
    traffic: float
    measured: float


def random_job(
    rng: np.random.Generator,
    *,
    servers: int = 4,
    degree: int = 2,
    layers: int = 4,
    strategies: int = 3,
    twins: int = 0,
    density: float = 0.5,
    mean_bytes: float = 4.0,
    reduction: float = 0.6,
    traffic: float = 0.0,
    measured: float = 0.0,
    memory_slack: float | None = None,
    compressors: int | None = None,
    error_slack: float | None = None,
    optics: str = "one_way",
    overlap: str = "none",
    parallel_links: bool = True,
    host_forwarding: bool = True,
) -> CodesignInstance:
    """A drawn job: links of 1 byte/s, whole numbers of bytes, times of a few seconds; some plan always fits.

    Layouts and groups are those of parallel training: all servers, blocks of consecutive servers, cosets {r, r + n/k,
    …}, single servers. Each strategy reads and writes one of the layouts, whatever the layer.

    Parameters
    ----------
    layers, strategies : int
        Layers, and strategies of each, all different.
    twins : int
        Further layers, each like a drawn one of the ``layers`` in all but its name, between the same neighbours.
    density : float
        How likely a layer reads an earlier one.
    mean_bytes : float
        Of outputs and reductions.
    reduction, traffic, measured : float
        How likely a strategy reduces in a group set (twice such), sends something between two servers besides, and has
        a measured time.
    memory_slack : float or None
        Memory of a server = this times what the fullest one needs in a drawn choice of strategies; None for no limit.
    compressors : int or None
        Compressed versions of every strategy that reduces anything: a part of the bytes for an error of 1, 2, 4 and so
        on and a time, both drawn for each.
    error_slack : float or None
        The error budget, as a part of what is lost with the largest error of each layer; None for no limit.
    """
    at_least("servers", servers, 2)
    at_least("degree", degree, 1)
    at_least("layers", layers, 1)
    at_least("strategies", strategies, 1)
    at_least("twins", twins, 0)
    if compressors is not None:
        at_least("compressors", compressors, 0)
    if error_slack is not None:
        at_least("error_slack", error_slack, 0)
    positive("mean_bytes", mean_bytes)
    parts = {"density": density, "reduction": reduction, "traffic": traffic, "measured": measured}
    for option, value in parts.items():
        part(option, value)
    if memory_slack is not None:
        at_least("memory_slack", memory_slack, 1)
    one_of("optics", optics, _OPTICS)
    one_of("overlap", overlap, _OVERLAPS)
    layouts, groups = _layouts(servers), _group_sets(servers)
    edges = [(i, j) for i, j in itertools.combinations(range(layers), 2) if rng.random() < density]
    readers = {target for _, target in edges}
    rates = _Rates(mean_bytes, reduction, traffic, measured)
    made: list[dict[str, Any]] = []
    for layer in range(layers):
        drawn = [
            {"name": f"s{a}"} | _strategy(rng, servers, len(layouts), len(groups), rates, layer in readers)
            for a in range(strategies)
        ]
        made.append(
            {
                "name": f"layer.{layer}",
                "output_bytes": _bytes(rng, mean_bytes),
                "convolution": bool(rng.random() < 0.3),
                "strategies": drawn,
            }
        )
    for twin in range(twins):
        model = int(rng.integers(layers))
        made.append(made[model] | {"name": f"twin.{twin}"})
        edges += [(source, layers + twin) for source, target in edges if target == model and source < layers]
        edges += [(layers + twin, target) for source, target in edges if source == model and target < layers]
    _compress(rng, made, compressors or 0)
    most = sum(max(each.get("error", 0.0) for each in layer["strategies"]) for layer in made)
    memory = None if memory_slack is None else memory_slack * _fullest(rng, servers, layouts, made)
    return CodesignInstance.from_data(
        {
            "name": f"random-n{servers}-d{degree}",
            "source": "drawn; links of 1 byte/s",
            "servers": servers,
            "degree": degree,
            "link_bandwidth_bytes_per_s": 1.0,
            "optics": optics,
            "parallel_links": parallel_links,
            "host_forwarding": host_forwarding,
            "overlap": overlap,
            "device": {
                "name": "1 operation/s, 2 in convolutions, 1 byte/s",
                "flops_per_s": 1.0,
                "convolution_flops_per_s": 2.0,
                "memory_bytes_per_s": 1.0,
                "memory_bytes": memory,
            },
            "layouts": layouts,
            "group_sets": groups,
            "layers": made,
            "edges": edges,
            "error_budget": None if error_slack is None else error_slack * most,
        }
    )


def _layouts(n: int) -> list[dict[str, Any]]:
    """All servers by samples; blocks of g by channels; the coset of k servers with server 0; single servers."""
    inner = [k for k in range(2, n) if n % k == 0]
    found: list[tuple[int, int, Iterable[int]]] = [(n, 1, range(n)), *((n // g, g, range(n)) for g in (*inner, n))]
    found += [(k, 1, range(0, n, n // k)) for k in inner]
    found += [(1, 1, (server,)) for server in range(n)]
    return [{"batch_parts": p, "channel_parts": q, "servers": tuple(servers)} for p, q, servers in found]


def _group_sets(n: int) -> list[Groups]:
    """All servers together; blocks of g; all cosets of k servers; one of them alone."""
    inner = [k for k in range(2, n) if n % k == 0]
    found: list[Groups] = [(tuple(range(n)),)]
    found += [tuple(tuple(range(first, first + g)) for first in range(0, n, g)) for g in inner]
    cosets = [tuple(tuple(range(r, n, n // k)) for r in range(n // k)) for k in inner]
    return list(dict.fromkeys(found + cosets + [each[:1] for each in cosets]))


def _strategy(
    rng: np.random.Generator, servers: int, layouts: int, sets: int, rates: _Rates, reads: bool
) -> dict[str, Any]:
    used = rng.choice(sets, size=min(2, sets), replace=False).tolist()
    sent = []
    if rng.random() < rates.traffic:
        source, target = rng.choice(servers, size=2, replace=False).tolist()
        sent = [(source, target, _bytes(rng, rates.mean_bytes))]
    return {
        "reads": int(rng.integers(layouts)) if reads else None,
        "writes": int(rng.integers(layouts)),
        "flops": int(rng.integers(0, 5)),
        "moved_bytes": int(rng.integers(0, 3)),
        "measured_s": int(rng.integers(1, 8)) / 4 if rng.random() < rates.measured else None,
        "memory_bytes": int(rng.integers(1, 9)),
        "reductions": [
            {"groups": each, "bytes": _bytes(rng, rates.mean_bytes)} for each in used if rng.random() < rates.reduction
        ],
        "traffic": sent,
    }


def _compress(rng: np.random.Generator, layers: list[dict[str, Any]], compressors: int) -> None:
    """Add the compressed versions of all strategies; twins, which share their strategies, have the same."""
    known: dict[int, list[dict[str, Any]]] = {}
    for layer in layers:
        plain = layer["strategies"]
        if id(plain) not in known:
            known[id(plain)] = list(plain)
            for strategy, number in itertools.product(plain, range(compressors)):
                if strategy["reductions"]:
                    known[id(plain)].append(_compressed(rng, strategy, number))
        layer["strategies"] = known[id(plain)]


def _compressed(rng: np.random.Generator, plain: dict[str, Any], number: int) -> dict[str, Any]:
    part = int(rng.integers(1, 8)) / 8
    return plain | {
        "name": f"{plain['name']}+c{number}",
        "reductions": [each | {"bytes": part * each["bytes"]} for each in plain["reductions"]],
        "encoding_s": int(rng.integers(0, 5)) / 4,
        "error": float(2**number),
    }


def _bytes(rng: np.random.Generator, mean: float) -> int:
    """A whole number of at least 1, uniform up to twice the mean."""
    return int(rng.integers(1, max(2, round(2 * mean))))


def _fullest(
    rng: np.random.Generator, servers: int, layouts: list[dict[str, Any]], layers: list[dict[str, Any]]
) -> float:
    taken = np.zeros(servers)
    for layer in layers:
        drawn = layer["strategies"][int(rng.integers(len(layer["strategies"])))]
        taken[list(layouts[drawn["writes"]]["servers"])] += drawn["memory_bytes"]
    return float(taken.max())
