"""Train the prior of ``tag:prior=learned``: ``python -m ddlopt.analysis.lab.plan_prior.train_small``.

Instances are networks that the tests do not use, and random graphs, on devices drawn at random; what the network is to
say is what our local search chooses for each group. The weights go into the package, where NumPy alone reads them.
To train it takes PyTorch.
"""

import argparse
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from ddlopt.analysis.lab.plan_prior.features import ACTION_FEATURES, NODE_FEATURES, Features, features
from ddlopt.analysis.lab.plan_prior.network import HIDDEN, ROUNDS, WEIGHTS
from ddlopt.analysis.pytorch import pytorch
from ddlopt.instances.generators.deployment import generate
from ddlopt.models.deployment import DeploymentInstance
from ddlopt.solvers.contracts import Limits
from ddlopt.solvers.deployment.plan.actions import actions
from ddlopt.solvers.deployment.plan.rater import PlanRater
from ddlopt.solvers.deployment.plan.search import Walk
from ddlopt.solvers.heuristic import Clock

NETWORKS = ("vgg16", "resnet50", "gpt2", "bert-base")
"""What is trained on; TAG's six networks, on which the prior is tried, are others."""


_KICKS = 30
"""Of local search on an instance, after which it finds little more."""


class Example(NamedTuple):
    """An instance and the action that local search chose for each group."""

    features: Features
    chosen: npt.NDArray[np.int64]


def instances(count: int, seed: int) -> Iterator[DeploymentInstance]:
    """Instances to train on: three networks to one random graph."""
    rng = np.random.default_rng(seed)
    for number in range(count):
        key = int(rng.integers(1 << 30))
        if number % 4 == 3:
            groups, device_groups = int(rng.integers(6, 20)), int(rng.integers(2, 5))
            made = generate("random", key, groups=groups, device_groups=device_groups, most_devices=6, memory=4.0)
        else:
            groups, batch = int(rng.choice([16, 24, 40])), int(rng.choice([32, 96, 256]))
            network = NETWORKS[int(rng.integers(len(NETWORKS)))]
            made = generate("network", key, model=network, groups=groups, batch=batch, devices_of="random")
        assert isinstance(made, DeploymentInstance)
        yield made


def example(instance: DeploymentInstance, seconds: float, seed: int) -> Example | None:
    """What local search says; None where it finds no plan that fits."""
    rater, clock = PlanRater(instance, ("even",)), Clock(Limits(seconds), None)
    row, rating = rater.best_uniform(clock)
    walk = Walk(rater, clock, np.random.default_rng(seed))
    row, rating = walk.descend(row, rating)
    for _ in range(_KICKS):
        offer = walk.kick(row)
        found, found_rating = walk.descend(offer, rater.rate(offer))
        if found_rating <= rating:
            row, rating = found, found_rating
        if clock.expired:
            break
    if rater.best is None or not rater.best_rating.fits:
        return None
    return Example(features(instance, actions(instance, ("even",))), rater.best)


def fit(examples: Sequence[Example], epochs: int, seed: int) -> dict[str, npt.NDArray[np.float32]]:
    """Weights of least cross entropy, by Adam.

    Raises
    ------
    OptionError
        If PyTorch is not installed.
    """
    torch = pytorch()
    torch.manual_seed(seed)
    weights = {name: _start(torch, *shape) for name, shape in shapes().items()}
    data = [
        (*(torch.tensor(each, dtype=torch.float32) for each in made.features), torch.tensor(made.chosen))
        for made in examples
    ]
    # A usual rate for Adam; a little decay, as there are few examples for many weights.
    optimiser = torch.optim.Adam(weights.values(), lr=3e-3, weight_decay=1e-5)
    order = np.random.default_rng(seed)
    for _ in range(epochs):
        for number in order.permutation(len(data)):
            nodes, edges, offered, chosen = data[number]
            optimiser.zero_grad()
            loss = torch.nn.functional.cross_entropy(
                _scores(torch, weights, nodes, edges, offered), chosen, label_smoothing=0.05
            )
            loss.backward()
            optimiser.step()
    return {name: weight.detach().numpy() for name, weight in weights.items()}


def shapes() -> dict[str, tuple[int, ...]]:
    """Shape of each of the network's arrays."""
    rounds: dict[str, tuple[int, ...]] = {}
    for k in range(ROUNDS):
        rounds |= {f"U{k}": (HIDDEN, HIDDEN), f"V{k}": (HIDDEN, HIDDEN), f"b{k}": (HIDDEN,)}
    ends: dict[str, tuple[int, ...]] = {"P": (2 * HIDDEN + ACTION_FEATURES, HIDDEN), "p": (HIDDEN,), "q": (HIDDEN,)}
    return {"W": (NODE_FEATURES, HIDDEN), "b": (HIDDEN,)} | rounds | ends


def _start(torch: Any, *shape: int) -> Any:
    scale = (2 / shape[0]) ** 0.5 if len(shape) == 2 else 0.1
    return (scale * torch.randn(shape)).requires_grad_()


def _scores(torch: Any, weights: Mapping[str, Any], nodes: Any, edges: Any, offered: Any) -> Any:
    """As ``prior_network.probabilities`` before the softmax."""
    hidden = torch.relu(nodes @ weights["W"] + weights["b"])
    for k in range(ROUNDS):
        hidden = hidden + torch.relu(hidden @ weights[f"U{k}"] + edges @ hidden @ weights[f"V{k}"] + weights[f"b{k}"])
    context = torch.cat([hidden, hidden.mean(dim=0, keepdim=True).expand_as(hidden)], dim=1)
    own = context @ weights["P"][: 2 * HIDDEN]
    return torch.relu(own[:, None, :] + offered @ weights["P"][2 * HIDDEN :] + weights["p"]) @ weights["q"]


def main() -> None:
    """Command line: how many instances, seconds of local search for each, and where the weights go."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--instances", type=int, default=80)
    parser.add_argument("--seconds", type=float, default=10.0, help="of local search for each instance")
    parser.add_argument("--epochs", type=int, default=60)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, default=Path(WEIGHTS))
    options = parser.parse_args()
    examples = []
    for number, instance in enumerate(instances(options.instances, options.seed)):
        made = example(instance, options.seconds, options.seed)
        examples += [made] if made else []
        print(f"{number + 1} of {options.instances}: {instance.name}", flush=True)
    weights: dict[str, Any] = dict(fit(examples, options.epochs, options.seed))
    np.savez_compressed(options.out, **weights)
    print(f"{options.out}: trained on {len(examples)} instances")


if __name__ == "__main__":
    main()
