"""Bundled instances of the problem ``exchange``, drawn and recorded.

``python -m ddlopt.instances.library.gossip.exchange`` records again and writes the files of recorded ones. What is
recorded differs in the last digits from machine to machine, so that the files are the originals; a test compares.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np

from ddlopt.instances.generators.gossip import generate
from ddlopt.instances.library import library_folder
from ddlopt.instances.library.make import text_of
from ddlopt.models.files import write_whole
from ddlopt.models.gossip import ExchangeInstance, GossipProblem

_DRAWN: dict[str, tuple[int, dict[str, Any]]] = {
    "exchange-tiny-t12": (0, {"steps": 12, "width": 2, "sends": 3, "decay": 6.0}),
    "exchange-tiny-plain-t12": (1, {"steps": 12, "width": 2, "send_cost": 4.0, "noise": 3.0, "norm": "plain"}),
    "exchange-tiny-return-t12": (8, {"steps": 12, "width": 2, "sends": 4, "noise": 20.0, "pull": 0.5}),
    "exchange-smooth-t2000": (2, {"steps": 2000, "width": 2, "sends": 40, "noise": 0.0}),
    "exchange-drift-t1000": (3, {"steps": 1000, "width": 4, "sends": 50}),
    "exchange-price-t1000": (4, {"steps": 1000, "width": 2, "send_cost": 30.0, "noise": 3.0}),
    "exchange-return-t300": (12, {"steps": 300, "width": 2, "sends": 12, "noise": 30.0, "pull": 0.3}),
    "exchange-plain-t1000": (6, {"steps": 1000, "width": 2, "sends": 50, "norm": "plain"}),
}
"""Seed and options of kind ``exchange-drift`` by name."""

_RECORDED: dict[str, dict[str, Any]] = {
    "exchange-digits-mlp-t400": {"model": "mlp", "steps": 400, "sends": 20, "axes": 6},
    "exchange-digits-logistic-t400": {"model": "logistic", "steps": 400, "sends": 40, "axes": 6},
}
"""Options of kind ``exchange-digits`` by name; the seed is 1."""


def instances() -> Iterator[GossipProblem]:
    """All bundled instances of the problem ``exchange``."""
    line = [[float(t)] for t in range(100)]
    told = "a straight line: least staleness has segments of two lengths"
    yield ExchangeInstance(name="exchange-line-t100", source=told, points=np.array(line), sends=29)
    for name, (seed, options) in _DRAWN.items():
        yield generate("exchange-drift", seed, name=name, **options)
    for name in _RECORDED:
        yield GossipProblem.from_file(library_folder("gossip") / f"{name}.json")


def recorded() -> Iterator[GossipProblem]:
    """Those of training, recorded anew.

    Raises
    ------
    OptionError
        If scikit-learn is not installed.
    """
    for name, options in _RECORDED.items():
        yield generate("exchange-digits", 1, name=name, **options)


if __name__ == "__main__":
    for each in recorded():
        write_whole(library_folder("gossip") / f"{each.name}.json", text_of(each))
