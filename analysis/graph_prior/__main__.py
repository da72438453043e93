"""Train the graph network of ``tag:prior=graph``; see the package. To train it takes PyTorch, and one thread."""

import argparse
import importlib
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from ddlopt.analysis.graph_prior.drawn import instances
from ddlopt.analysis.graph_prior.examples import Examples, imitation, self_play
from ddlopt.analysis.graph_prior.fit import Weights, fit, start
from ddlopt.solvers.deployment.plan.prior.priors import GRAPH_WEIGHTS, GraphPrior
from ddlopt.solvers.deployment.plan.rater import PlanRater

_PLANS = 20_000
"""That local search simulates for an instance, in a second or two; it is then near what it finds in all."""
_STATES = 40
"""Of an instance, by imitation."""
_LIMIT, _FIRST_LIMIT = 800, 8000
"""Of playouts for a decision, with a network and in the first games, as in TAG's released code."""


def by_imitation(options: argparse.Namespace) -> Weights:
    """What local search chose."""
    found: list[Examples] = []
    for number, instance in enumerate(instances(options.instances, options.seed)):
        made = imitation(instance, number % 2 == 1, _PLANS, _STATES, options.seed)
        found += [made] if made else []
        _say(f"{number + 1} of {options.instances}: {instance.name}")
    return fit(found, start(options.seed), options.steps, options.seed, _say_loss)


def by_self_play(options: argparse.Namespace) -> Weights:
    """What the tree search visits: first with a uniform prior, then with what was learned, in rounds."""
    drawn = list(instances(options.instances, options.seed))
    found = []
    for number, instance in enumerate(drawn):
        found.append(self_play(instance, None, _FIRST_LIMIT, options.seed))
        _say(f"first game {number + 1} of {len(drawn)}: {instance.name}")
    rounds = max(options.rounds, 1)
    weights = fit(found, start(options.seed), options.steps // 2, options.seed, _say_loss)
    for number in range(options.rounds):
        for instance in _of_round(drawn, number, options.games):
            prior = GraphPrior(PlanRater(instance, ("even",)), weights)
            found.append(self_play(instance, prior, _LIMIT, options.seed + number + 1))
            _say(f"round {number + 1}: {instance.name}")
        # What was played with worse networks is left behind little by little.
        found = found[options.games // 2 :]
        weights = fit(found, weights, options.steps // 2 // rounds, options.seed + number + 1)
    return weights


def _of_round(drawn: list[Any], number: int, games: int) -> Iterator[Any]:
    return (drawn[(number * games + k) % len(drawn)] for k in range(games))


def _say(text: str) -> None:
    print(f"{time.process_time():7.0f} s  {text}", flush=True)


def _say_loss(step: int, loss: float) -> None:
    _say(f"step {step}: {loss:.3f}")


def main() -> None:
    """Command line: how to train, on how much, and where the weights go."""
    parser = argparse.ArgumentParser(description=str(__doc__).splitlines()[0])
    parser.add_argument("--by", choices=("imitation", "self-play"), default="imitation")
    parser.add_argument("--instances", type=int, default=160)
    parser.add_argument("--steps", type=int, default=3000, help="of the optimiser")
    parser.add_argument("--rounds", type=int, default=1, help="of self-play with what was learned")
    parser.add_argument("--games", type=int, default=6, help="in a round")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, default=Path(GRAPH_WEIGHTS))
    options = parser.parse_args()
    importlib.import_module("torch").set_num_threads(1)
    weights = by_imitation(options) if options.by == "imitation" else by_self_play(options)
    np.savez_compressed(options.out, **weights)  # type: ignore[arg-type]
    _say(f"{options.out}: {sum(each.size for each in weights.values())} weights")


if __name__ == "__main__":
    main()
