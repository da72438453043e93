"""Random co-design instances of a few servers, and their optimum by trying everything."""

import itertools

import numpy as np
from brute_force import brute_force

from ddlopt.instances.generators.codesign.random import random_job
from ddlopt.models.codesign import job_of
from ddlopt.models.codesign.tables import tables_of


def drawn(seed, most_servers, most_layers):
    """A job with at most so many servers and layers, and any of the features."""
    rng = np.random.default_rng([7, seed])
    servers = int(rng.integers(2, most_servers + 1))
    return random_job(
        rng,
        servers=servers,
        degree=min(int(rng.integers(1, 4)), servers - 1),
        layers=int(rng.integers(2, most_layers + 1)),
        strategies=int(rng.integers(2, 4)),
        density=float(rng.choice([0.3, 0.6, 1.0])),
        traffic=float(rng.choice([0.0, 0.5])),
        measured=float(rng.choice([0.0, 0.5])),
        optics=str(rng.choice(["one_way", "one_way", "duplex"])),
        overlap=str(rng.choice(["none", "none", "full"])),
        parallel_links=bool(rng.random() < 0.8),
        host_forwarding=bool(rng.random() < 0.85),
        memory_slack=None if rng.random() < 0.6 else 1.0,
    )


FEATURES = (
    {"twins": 2},
    {"overlap": "full", "servers": 6, "traffic": 0.5},
    {"optics": "duplex", "servers": 5},
    {"overlap": "full", "optics": "duplex", "servers": 5, "degree": 3},
    {"memory_slack": 1.02, "twins": 1},
    {"memory_slack": 1.0, "overlap": "full", "measured": 0.5},
)


def drawn_with_features(seed):
    """Four layers with three strategies, and one of the features in turn."""
    return random_job(np.random.default_rng(seed), **({"layers": 4, "strategies": 3} | FEATURES[seed % len(FEATURES)]))


def best_of_all(instance):
    """Least iteration time over all choices of strategies, all links, all rings and all routes; inf if there is none.

    Choices that send the same bytes have the same best links, so each of these jobs is solved once.
    """
    tables, known, best = tables_of(instance), {}, np.inf
    for choices in itertools.product(*map(range, tables.sizes)):
        if not tables.fits(choices):
            continue
        compute_s = tables.compute_of(choices)
        if instance.iteration_time_s(compute_s, 0.0) >= best:
            continue
        job = job_of(instance, choices)
        key = () if job is None else (job.traffic_bytes.tobytes(), job.allreduce_groups)
        if key not in known:
            known[key] = 0.0 if job is None else brute_force(job)
        best = min(best, instance.iteration_time_s(compute_s, known[key]))
    return best
