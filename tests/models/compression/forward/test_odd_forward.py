"""Gradients that take no time on the wire, and sides without a gradient that is single at an end."""

import pytest
from forward_brute_force import optimum_of
from volume import slow

import ddlopt
from ddlopt.models.compression.forward.instance import ForwardInstance


def instance(wire, forward, ready=None, encode=0.0):
    """A gradient for each figure of the wire, with an option that takes longer to encode."""
    menus = [
        [
            {"label": "none", "compressor": "none", "wire_s": seconds},
            {"label": "half", "compressor": "fp16", "encode_s": encode, "wire_s": seconds / 2, "error": 1.0},
        ]
        for seconds in wire
    ]
    ready = ready or [0.0] * len(wire)
    gradients = [{"name": f"g{k}", "shape": [1], "ready_s": at, "menu": k} for k, at in enumerate(ready)]
    timeline = {"name": "odd", "gradients": gradients, "menus": menus}
    return ForwardInstance.from_data({"name": "odd", "timeline": timeline, "forward_s": forward})


@pytest.mark.parametrize(
    ("wire", "forward", "ready"),
    [
        ((1.0, 1.0, 0.0), (1.0, 2.0, 1.0), (0.0, 0.0, 1.0)),
        ((0.0, 0.0, 0.0), (1.0, 0.0, 1.0), (0.0, 1.0, 1.0)),
        ((0.0, 2.0, 0.0), (0.0, 0.0, 0.0), (0.0, 0.0, 0.0)),
    ],
)
def test_gradients_of_no_length_are_in_some_order_that_takes_no_longer(wire, forward, ready):
    case = instance(wire, forward, ready, encode=9.0)
    found = ddlopt.solve(case, "forward-order")
    assert found.checked
    assert found.objective == pytest.approx(float(optimum_of(case)), rel=1e-6)


@pytest.mark.parametrize(
    "options", ["first=0,last=1,every=0", *map(slow, ["first=0,last=0,every=0", "first=0,last=0,every=2"])]
)
def test_the_first_and_the_last_gradient_are_single(options):
    case = instance((1.0, 2.0, 1.0, 3.0, 1.0), (1.0, 1.0, 2.0, 1.0, 1.0), encode=0.5)
    found = ddlopt.solve(case, f"forward-sides:{options}")
    assert found.bound <= float(optimum_of(case)) * (1 + 1e-6)
    assert found.objective >= float(optimum_of(case)) * (1 - 1e-6)
