"""Types of accelerators: the relaxation without them, its bounds, and the certificate that does not know them."""

from fractions import Fraction

import numpy as np
import pytest
from scheduling_brute_force import brute_force, random_instance
from volume import for_each, seeds

from ddlopt.models.errors import InfeasibleError, NotApplicableError
from ddlopt.models.scheduling.bounds import bound
from ddlopt.models.scheduling.certificate.relaxed import Cluster, choices
from ddlopt.models.scheduling.makespan.exact_bounds import exact_makespan_bound
from ddlopt.models.scheduling.pool import pool
from ddlopt.models.scheduling.types import at_their_fastest


@pytest.mark.parametrize("objective", ["utility", "max_min", "makespan", "completion"])
@for_each("seed", seeds(4, 40))
def test_bounds_hold(objective, seed):
    asked = random_instance(
        np.random.default_rng(seed),
        objective=objective,
        types=("mixed", "apart")[seed % 2],
        places=(2, 2),
        energy=seed % 3 == 0,
        preemptive=bool(seed % 4),
    )
    best = brute_force(asked)
    if best is None:
        return
    sign = 1 if asked.sense == "maximize" else -1
    assert sign * bound(asked) >= sign * best.objective - 1e-9
    if objective == "makespan":
        assert exact_makespan_bound(asked) <= best.objective


def test_jobs_that_cannot_finish_even_at_their_fastest_are_told():
    asked = random_instance(np.random.default_rng(1), objective="makespan", types="mixed", places=(2, 2))
    much = tuple(job.model_copy(update={"minibatches": 1e6}) for job in asked.jobs)
    with pytest.raises(InfeasibleError):
        bound(asked.model_copy(update={"jobs": much}))


def test_the_relaxation_rounds_down():
    asked = random_instance(np.random.default_rng(0), types="mixed", places=(2, 2))
    relaxed = at_their_fastest(asked)
    assert asked.typed
    assert not relaxed.typed
    for job, free in zip(asked.jobs, relaxed.jobs, strict=True):
        fastest = max(map(Fraction, job.speeds.values()), default=Fraction(1))
        assert Fraction(free.minibatches) * fastest <= Fraction(job.minibatches)
        assert free.minibatches * float(fastest) == pytest.approx(job.minibatches, rel=1e-12)
    assert at_their_fastest(relaxed) is relaxed


def test_who_knows_no_types_is_told():
    typed = random_instance(np.random.default_rng(0), types="mixed", places=(2, 2))
    assert not pool(typed).exact
    with pytest.raises(NotApplicableError, match="speed of jobs depends on their type"):
        choices(typed, 0, Cluster(typed))
    assert pool(at_their_fastest(typed)).exact
