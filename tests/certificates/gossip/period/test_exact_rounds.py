"""The least time with designed rounds in rational numbers: no mixing is above the lines, no plan faster."""

from fractions import Fraction

import numpy as np
import pytest

import ddlopt
from ddlopt import check_certificate, instances
from ddlopt.certificates.gossip.period import exact_bounds
from ddlopt.certificates.gossip.period.exact_bounds import _proves_designed, exact_period_bound
from ddlopt.certificates.gossip.period.exact_rounds import ExactMixing
from ddlopt.models.errors import NotApplicableError, RefutedError
from ddlopt.models.gossip import PeriodInstance, PeriodPlan, evaluate
from ddlopt.models.gossip.network import Network
from ddlopt.models.gossip.period.instance import Rounds
from ddlopt.models.gossip.period.time_to_target import TimeToTarget
from ddlopt.solvers.proofs import CombinatorialCertificate


def rounds(matchings=((0, 2), (1,), (3,)), times_s=(1.0, 2.0, 0.5)):
    """A ring of four."""
    network = Network(nodes=4, edges=[(0, 1), (1, 2), (2, 3), (0, 3)])
    return Rounds(network=network, matchings=matchings, times_s=times_s)


def instance(target=0.5, given=None, **more):
    return PeriodInstance(name="ring", workers=4, compute_s=1.0, target=target, rounds=given or rounds(), **more)


def second(given, chances):
    matrix = np.zeros((given.network.nodes,) * 2)
    for chance, matching in zip(chances, given.matchings, strict=True):
        for a, b in (given.network.edges[edge] for edge in matching):
            matrix[[a, b], [a, b]] += chance
            matrix[[a, b], [b, a]] -= chance
    return np.linalg.eigvalsh(matrix)[1]


@pytest.mark.parametrize(
    "given",
    [
        rounds(),
        rounds(matchings=((0, 2, 2), (1, 1), (3,))),  # an edge that is named twice counts twice
        instances.load("gossip/period-abilene-m11").rounds,
        instances.load("gossip/period-torus-m16").rounds,
    ],
)
def test_no_mixing_is_above_the_lines(given):
    mixing, rng = ExactMixing(given), np.random.default_rng(1)
    assert mixing.most(Fraction(1)) == 1  # no line, no claim
    longest = max(given.times_s)
    for budget in (0.1 * longest, 0.5 * longest, longest):
        reached = mixing.settle(budget)
        assert reached <= mixing.most(Fraction(budget)) <= Fraction(reached) * (1 + Fraction(1, 10**5))
    for _ in range(300):
        chances = rng.dirichlet(np.ones(len(given.times_s))) * rng.choice([1.0, rng.random()])
        spent = float(chances @ np.array(given.times_s))
        assert second(given, chances) / 2 <= float(mixing.most(Fraction(spent))) + 1e-12


def beaten_by_none(ring, bound):
    rng, times = np.random.default_rng(2), TimeToTarget.of(ring)
    least = None
    for _ in range(100):
        chances = rng.dirichlet(np.ones(3)) * rng.choice([0.99, rng.random()])
        period = float(rng.integers(1, 9))
        step = ring.step_size or times.step(period, 1 - second(ring.rounds, chances) / 2)
        plan = PeriodPlan(instance="ring", period=period, step_size=step, activation=tuple(chances.tolist()))
        found = evaluate(ring, plan, exact=True).objective
        if found is not None:
            assert found >= bound
            least = found if least is None else min(least, found)
    assert least is not None
    return least


def test_no_plan_is_faster(monkeypatch):
    monkeypatch.setattr(exact_bounds, "_EASED_ROUNDS", (Fraction(1, 20),))
    monkeypatch.setattr(exact_bounds, "_TRIED", 64)
    monkeypatch.setattr(exact_bounds, "_GRID", 16)
    ring = instance()
    bound = exact_period_bound(ring)
    least = beaten_by_none(ring, bound)
    assert least <= bound * (1 + Fraction(1, 4))
    monkeypatch.setattr(exact_bounds, "_MOST_INTERVALS", 30)
    assert not _proves_designed(ring, ExactMixing(ring.rounds), least * (1 + Fraction(1, 100)))


@pytest.mark.slow
@pytest.mark.parametrize("more", [{}, {"whole": True}, {"step_size": 0.05}, {"deviation": "posynomial"}])
def test_the_best_plan_is_near_it(more, monkeypatch):
    monkeypatch.setattr(exact_bounds, "_EASED_ROUNDS", (Fraction(1, 500),))
    ring = instance(**more)
    bound, found = exact_period_bound(ring), ddlopt.solve(ring, "best-period", time_limit=20)
    assert bound <= Fraction(found.objective) <= bound * (1 + Fraction(3, 1000))
    beaten_by_none(ring, bound)
    monkeypatch.setattr(exact_bounds, "_MOST_INTERVALS", 60)
    assert not _proves_designed(ring, ExactMixing(ring.rounds), Fraction(found.objective) * (1 + Fraction(1, 1000)))


def test_what_is_out_of_reach_has_no_bound():
    with pytest.raises(NotApplicableError, match="no budget of seconds"):
        exact_period_bound(instance(step_size=1e3))


@pytest.mark.slow
@pytest.mark.parametrize("name", ["period-torus-m16", "period-cvx-m8"])
def test_claims_above_it_are_refused(name, tmp_path):
    load = instances.load(f"gossip/{name}")
    best = evaluate(load, instances.best(f"gossip/{name}"), exact=True).objective
    bound, path = exact_period_bound(load), tmp_path / "proof.json.gz"
    assert bound <= best <= bound * (1 + Fraction(1, 10**4))
    CombinatorialCertificate(load.name, load.digest, best).save(path)
    with pytest.raises(RefutedError, match="combinatorial bound"):
        check_certificate(load, path)
