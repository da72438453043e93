"""Instances with measured errors: measured again they are the same, and a plan that is run keeps its promise."""

import numpy as np
import pytest
from volume import for_each

pytest.importorskip("sklearn", reason="the digits come with scikit-learn: pip install 'ddlopt[train]'")

import ddlopt
from ddlopt.instances.generators.compression.measured import FIRST, setting_of
from ddlopt.instances.library.compression.measured import measured, measurements
from ddlopt.instances.workloads.compression.measured import run_plan
from ddlopt.instances.workloads.digits import Training
from ddlopt.models.errors import InstanceError, OptionError


@pytest.mark.slow
@for_each("name", measurements())
def test_measured_again_they_are_the_same(name):
    stored, again = ddlopt.load(f"compression/{name}"), measured(name)
    assert stored.source == again.source
    for old, new in zip(stored.gradients, again.gradients, strict=True):
        assert old.model_dump(exclude={"curve"}) == new.model_dump(exclude={"curve"})
        if stored.problem == "levels":
            assert old.curve.levels == new.curve.levels
            np.testing.assert_allclose(old.curve.errors, new.curve.errors, rtol=1e-6, atol=1e-9)
    if stored.problem == "timeline":
        for old, new in zip(stored.menus, again.menus, strict=True):
            assert [each.model_copy(update={"error": 0.0}) for each in old] == [
                each.model_copy(update={"error": 0.0}) for each in new
            ]
            np.testing.assert_allclose([o.error for o in old], [o.error for o in new], rtol=2e-3)


@pytest.mark.slow
def test_a_plan_keeps_its_promise():
    """Errors were measured at five steps; over other steps the plan's stay within a quarter of the promise."""
    instance = ddlopt.load("compression/measured-digits-w8-10g")
    result = ddlopt.solve(instance, "overlap-timeline")
    assert result.details["error"] <= instance.error_budget * (1 + 1e-9)
    settings = [setting_of(instance.option(i, choice)) for i, choice in enumerate(result.solution.choices)]
    assert any(setting.compressor != "none" for setting in settings)
    seed = int(np.random.default_rng(1).integers(2**31))
    run = run_plan(settings, Training(workers=8, seed=seed), FIRST, steps=6)
    assert run.error == pytest.approx(result.details["error"], rel=0.25)


def test_bad_options():
    with pytest.raises(OptionError, match="compressor is 'zip'; use one of: powersgd, top_k"):
        ddlopt.generate("compression", "levels-measured", compressor="zip")
    with pytest.raises(OptionError, match="workers is 1; it must be at least 2"):
        ddlopt.generate("compression", "measured", workers=1)
    with pytest.raises(InstanceError, match="error_budget is 1e-09, but no choice of levels has less than"):
        ddlopt.generate(
            "compression", "levels-measured", compressor="top_k", workers=2, batch=2, error_budget_part=1e-9
        )
