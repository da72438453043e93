"""Orders of micro-batches with the frontier hidden: a search, then starts by tick."""

import pytest

import ddlopt
from ddlopt.models import plugins


@pytest.mark.parametrize("name", ["tiny-p2-n3", "unit-p4-n6", "barrier-p3-n5"])
def test_the_search_answers_and_starts_by_tick_prove(name, monkeypatch):
    instance, best = (each(f"deployment/microbatches-{name}") for each in (ddlopt.load, ddlopt.instances.best))
    monkeypatch.setenv(plugins.HIDDEN, "1")
    found = ddlopt.solve(instance, gap=0.05, time_limit=60)
    assert found.checked
    least = float(ddlopt.check(instance, best).objective)
    assert found.bound * (1 - 1e-9) <= least <= found.objective * (1 + 1e-9)
    assert found.gap <= 0.1
