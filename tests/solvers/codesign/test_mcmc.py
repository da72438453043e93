"""The Metropolis walk over strategies: against every choice there is, and its sums against sums made anew."""

import itertools

import numpy as np
import pytest
from volume import for_each

from ddlopt.instances.generators.codesign.random import random_job
from ddlopt.models.codesign import CodesignInstance
from ddlopt.models.codesign.tables import tables_of
from ddlopt.models.errors import NoSolutionError, OptionError
from ddlopt.models.topology import TopologyDesign
from ddlopt.solvers.codesign.fixed_routes import FixedRoutes
from ddlopt.solvers.codesign.topoopt import mcmc
from ddlopt.solvers.codesign.topoopt.mcmc import Metropolis, Proposals, Sums
from ddlopt.solvers.contracts import Limits
from ddlopt.solvers.heuristic import Clock

GENTLE = 1e-4
"""Per millisecond, for instances whose iterations take seconds."""


def links(instance, steps=(1, 3)):
    n = instance.servers
    return TopologyDesign(instance="rings", links=tuple((i, (i + step) % n, 1) for i in range(n) for step in steps))


def drawn(seed, **options):
    options = {"servers": (4, 6, 8)[seed % 3], "overlap": ("none", "full")[seed % 2], "traffic": 0.3} | options
    instance = random_job(np.random.default_rng(seed), **options)
    return instance, FixedRoutes.of(instance, links(instance), seed=seed)


def all_times(routes):
    sizes = tables_of(routes.instance).sizes
    return {choices: routes.time_s(choices) for choices in itertools.product(*map(range, sizes))}


@for_each("seed", range(8))
def test_enough_proposals_find_the_best_choice(seed):
    _, routes = drawn(seed, memory_slack=1.0 if seed % 3 == 1 else None)
    times = all_times(routes)
    worst = max((c for c in times if np.isfinite(times[c])), key=times.__getitem__)
    walked = Metropolis(4000, alpha=GENTLE).search(routes, worst, seed)
    assert walked.time_s == pytest.approx(min(times.values()))
    assert times[walked.choices] == walked.time_s


def test_a_walk_keeps_the_error_budget():
    for seed in range(4):
        _, routes = drawn(seed, layers=3, strategies=2, compressors=2, error_slack=0.4, reduction=0.9)
        times = all_times(routes)
        worst = max((c for c in times if np.isfinite(times[c])), key=times.__getitem__)
        assert any(np.isinf(time) for time in times.values())
        walked = Metropolis(3000, alpha=GENTLE).search(routes, worst, seed)
        assert walked.time_s == pytest.approx(min(times.values()))


@for_each("propagation", [0.0, 0.6])
@for_each("seed", range(6))
def test_sums_kept_up_to_date_are_the_sums_made_anew(seed, propagation):
    instance, routes = drawn(seed, layers=9, strategies=5, twins=2)
    proposals, kept = Proposals(tables_of(instance), seed), Sums.of(routes, (0,) * len(instance.layers))
    for _ in range(100):
        kept = kept.changed(proposals.draw(kept.choices, propagation))
        assert kept.time_s == pytest.approx(routes.time_s(kept.choices), rel=1e-12)
    anew = Sums.of(routes, kept.choices)
    for name in ("load", "busy", "memory", "error"):
        assert getattr(kept, name) == pytest.approx(getattr(anew, name), abs=1e-9)


def test_a_seed_gives_one_walk():
    instance, routes = drawn(3, layers=8, strategies=6)
    first = (0,) * len(instance.layers)
    walks = [Metropolis(60, alpha=GENTLE).search(routes, first, seed) for seed in (5, 5, 6)]
    assert (walks[0].choices, walks[0].accepted) == (walks[1].choices, walks[1].accepted)
    assert (walks[0].choices, walks[0].accepted) != (walks[2].choices, walks[2].accepted)


def test_sums_that_are_remembered_change_no_walk(monkeypatch):
    instance, routes = drawn(3, layers=4, strategies=3)
    first = (0,) * len(instance.layers)
    walks = []
    for kept in (1000, 1):
        monkeypatch.setattr(mcmc, "_KEPT_PROPOSALS", kept)
        walks.append(Metropolis(300, alpha=GENTLE).search(routes, first, 7))
    assert walks[0].accepted > 20
    assert (walks[0].choices, walks[0].accepted) == (walks[1].choices, walks[1].accepted)


def test_the_temperature_is_per_millisecond():
    """Steps of a second are taken at 1e-9/ms and refused at 1/ms, unless they are shorter."""
    instance, routes = drawn(1, layers=6)
    first = (0,) * len(instance.layers)
    hot, cold = (Metropolis(200, alpha=alpha).search(routes, first, 0) for alpha in (1e-9, 1.0))
    assert hot.accepted == hot.proposed
    assert 0 < cold.accepted < cold.proposed / 4


def test_a_slower_step_is_taken_with_the_stated_probability():
    """Two strategies, one second apart: the longer one is entered exp(-alpha * 1000 ms) of the times."""
    instance = random_job(np.random.default_rng(0), layers=1, strategies=2, reduction=0.0, measured=1.0)
    data = instance.model_dump(mode="json")
    for strategy, time_s in zip(data["layers"][0]["strategies"], (1.0, 2.0), strict=True):
        strategy |= {"measured_s": time_s, "reads": None}
    routes = FixedRoutes.of(CodesignInstance.from_data(data), links(instance))
    walked = Metropolis(10_000, np.log(4) / 1000).search(routes, (0,), 0)
    # Up with probability 1/4, down always: in the shorter one 4/5 of the time, so 2/5 of the proposals are accepted.
    assert walked.accepted / walked.proposed == pytest.approx(2 / 5, abs=0.02)


def test_names_are_handed_on_to_neighbours_only():
    """In a chain of three with equal names, a proposal by propagation makes neighbours alike."""
    instance = random_job(np.random.default_rng(2), layers=4, strategies=3, density=1.0)
    chain = instance.model_dump(mode="json") | {"edges": [[0, 1], [1, 2]]}
    instance = CodesignInstance.from_data(chain)
    proposals, at = Proposals(tables_of(instance), 4), (0, 1, 2, 1)
    met = set()
    for _ in range(400):
        changes = proposals.draw(at, 1.0)
        if changes:
            met.add(tuple(changes.get(layer, a) for layer, a in enumerate(at)))
    # From the ends inwards and on; from the middle to one end only, as a walk does not turn round. Layer 3 is alone.
    assert met == {(0, 0, 2, 1), (0, 0, 0, 1), (0, 2, 2, 1), (2, 2, 2, 1), (1, 1, 2, 1), (0, 1, 1, 1)}


def test_strategies_that_cannot_be_sent_or_do_not_fit_are_no_start():
    instance, _ = drawn(2)
    stuck = FixedRoutes.of(instance, None)
    sending = next(c for c, t in all_times(stuck).items() if np.isinf(t))
    with pytest.raises(NoSolutionError, match="cannot serve the strategies to begin with"):
        Metropolis(10).search(stuck, sending, 0)


def test_what_has_no_way_is_never_chosen():
    instance = random_job(np.random.default_rng(4), layers=3, strategies=5, reduction=0.3, density=0.3)
    half = instance.servers // 2
    rings = tuple((i + far, (i + 1) % half + far, 1) for i in range(half) for far in (0, half))
    routes = FixedRoutes.of(instance, TopologyDesign(instance="two rings apart", links=rings))
    times = all_times(routes)
    finite = [choices for choices, time in times.items() if np.isfinite(time)]
    assert 1 < len(finite) < len(times)
    walked = Metropolis(4000, alpha=GENTLE).search(routes, max(finite, key=times.__getitem__), 0)
    assert walked.time_s == pytest.approx(min(times.values()))


def test_the_clock_ends_a_walk():
    instance, routes = drawn(0)
    clock = Clock(Limits(), None)
    clock.interrupted = True
    walked = Metropolis(1000).search(routes, (0,) * len(instance.layers), 0, clock)
    assert walked.proposed == 0
    assert walked.choices == (0,) * len(instance.layers)


@pytest.mark.parametrize("options", [{"proposals": 0}, {"alpha": 0.0}, {"propagation": 1.5}])
def test_options_out_of_range(options):
    with pytest.raises(OptionError):
        Metropolis(**options)
