"""Train the graph network of ``tag:prior=graph``; see the package. To train it takes PyTorch, and one thread.

The command without options makes the weights of the package anew. Searches are counted in simulations and training in
steps of the optimiser, so that the clock decides on nothing; ``made by`` in a file of weights says the options.
"""

import argparse
import pickle
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from ddlopt.analysis.lab.plan_prior.drawn import instances
from ddlopt.analysis.lab.plan_prior.examples import Examples, imitation, on_own_way, self_play
from ddlopt.analysis.lab.plan_prior.fit import RATE, Weights, fit, start
from ddlopt.analysis.lab.plan_prior.network import MADE_BY, weights_in
from ddlopt.analysis.lab.plan_prior.priors import GRAPH_WEIGHTS, GraphPrior
from ddlopt.analysis.lab.plan_prior.validation import Behind, behind, validation
from ddlopt.analysis.pytorch import pytorch
from ddlopt.solvers.deployment.plan.rater import PlanRater

Made = TypeVar("Made")

_STATES, _OWN_STATES = 40, 8
"""Of an instance, on the way to a good plan and on the network's own."""
_OWN_PLANS = 1000
"""That are simulated to complete a partial plan of the network."""
_LIMIT, _FIRST_LIMIT = 800, 8000
"""Of playouts for a decision, with a network and in the first games, as in TAG's released code."""
_VALIDATED, _PLAYOUTS = 32, 100
"""Instances, and playouts on each."""
_SAID = ("by", "instances", "plans", "steps", "rounds", "games", "seed")
"""Options that decide on the weights."""


def by_imitation(options: argparse.Namespace) -> Weights:
    """What local search chose; then, in rounds, what it would choose where the network came to."""
    known: list[tuple[Any, bool, Examples]] = []
    for number, instance in enumerate(instances(options.instances, options.seed)):
        by_speed = number % 2 == 1

        def make(instance: Any = instance, by_speed: bool = by_speed) -> Examples | None:
            return imitation(instance, by_speed, options.plans, _STATES, options.seed)

        made = _kept(options, f"examples-{number}", make)
        known += [(instance, by_speed, made)] if made else []
        _say(f"{number + 1} of {options.instances}: {instance.name}")
    found = [made for _, _, made in known]
    weights = _kept(
        options, "weights-0", lambda: fit(found, start(options.seed), options.steps, options.seed, _say_loss)
    )
    for number in range(1, options.rounds + 1):
        for instance, by_speed, made in _of_round(known, number - 1, options.games):
            own = on_own_way(instance, by_speed, weights, made.plan, _OWN_PLANS, _OWN_STATES, options.seed + number)
            found += [own] if own else []
        _say(f"round {number}: {len(found)} instances' states")
        weights = fit(found, weights, options.steps // 4, options.seed + number, _say_loss, RATE / 2)
    return weights


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


def validate(options: argparse.Namespace) -> None:
    """Tell how far files of weights are behind the search, on instances of their own."""
    files = {file: weights_in(file.open("rb")) for file in options.validate}
    told: dict[Path, list[Behind]] = {file: [] for file in files}
    for drawn in validation(_VALIDATED, options.plans):
        for file, weights in files.items():
            told[file].append(behind(drawn, weights, _PLAYOUTS))
        _say(drawn.instance.name + "".join(_percent(found[-1]) for found in told.values()))
    for file, found in told.items():
        _say(f"{file}, mean of {len(found)}{_percent(Behind(*np.mean(found, axis=0)))}")


def _percent(found: Behind) -> str:
    each = (f"{name} {100 * np.expm1(value):+.1f} %" for name, value in found._asdict().items())
    return ": " + ", ".join(each)


def _of_round(drawn: list[Made], number: int, games: int) -> Iterator[Made]:
    return (drawn[(number * games + k) % len(drawn)] for k in range(games))


def _kept(options: argparse.Namespace, name: str, make: Callable[[], Made]) -> Made:
    """What a run of before has left in the folder ``--keep``, or is made now and left there."""
    if options.keep is None:
        return make()
    file = options.keep / f"{name}.pickle"
    if not file.exists():
        options.keep.mkdir(parents=True, exist_ok=True)
        file.write_bytes(pickle.dumps(make()))
    made: Made = pickle.loads(file.read_bytes())
    return made


def _say(text: str) -> None:
    print(text, flush=True)


def _say_loss(step: int, loss: float) -> None:
    _say(f"step {step}: {loss:.3f}")


def arguments() -> argparse.ArgumentParser:
    """How to train, on how much, and where the weights go; the defaults are those of the weights in the package."""
    parser = argparse.ArgumentParser(description=str(__doc__).splitlines()[0])
    parser.add_argument("--by", choices=("imitation", "self-play"), default="imitation")
    parser.add_argument("--instances", type=int, default=200)
    parser.add_argument("--plans", type=int, default=30_000, help="that local search simulates for an instance")
    parser.add_argument("--steps", type=int, default=8000, help="of the optimiser")
    parser.add_argument("--rounds", type=int, default=2, help="with what was learned")
    parser.add_argument("--games", type=int, default=50, help="instances in a round")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--keep", type=Path, help="folder for what these options have made, to go on from")
    parser.add_argument("--out", type=Path, default=Path(GRAPH_WEIGHTS))
    parser.add_argument("--validate", type=Path, nargs="+", help="files of weights: no training")
    return parser


def made_by(options: argparse.Namespace) -> str:
    """The options that decide on the weights, as they are written."""
    return " ".join(f"--{name} {getattr(options, name)}" for name in _SAID)


def main(words: Sequence[str] | None = None) -> None:
    """Command line."""
    options = arguments().parse_args(words)
    if options.validate:
        validate(options)
        return
    pytorch().set_num_threads(1)
    weights = by_imitation(options) if options.by == "imitation" else by_self_play(options)
    np.savez_compressed(options.out, **weights, **{MADE_BY: np.array(made_by(options))})  # type: ignore[arg-type]
    _say(f"{options.out}: {sum(each.size for each in weights.values())} weights")


if __name__ == "__main__":
    main()
