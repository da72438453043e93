"""Bundled deployments: TAG's networks on its test-bed and on drawn devices, on two machines, and tiny ones."""

from collections.abc import Iterator

from ddlopt.instances.generators.deployment import generate
from ddlopt.models.deployment import DeploymentProblem

NETWORKS = ("vgg19", "resnet101", "inception-v3", "transformer-base", "bert-small", "bert-large")


def instances() -> Iterator[DeploymentProblem]:
    """All bundled instances of the problem ``plan``."""
    for model in NETWORKS:
        yield generate("network", model=model, name=f"{model}-testbed")
    for model, seed in (("vgg19", 1), ("resnet101", 2), ("bert-large", 3)):
        yield generate("network", seed, model=model, devices_of="random", name=f"{model}-drawn-s{seed}")
    for model in ("vgg19", "transformer-base", "bert-small"):
        yield generate(
            "network",
            model=model,
            groups=12,
            batch=6,
            devices_of="two-machines",
            separate_gradients=True,
            name=f"{model}-two-machines",
        )
    for groups in (6, 8):
        yield generate("network", model="vgg19", groups=groups, name=f"vgg19-testbed-g{groups}")
    for seed, groups, device_groups in ((1, 2, 2), (2, 3, 2), (3, 3, 3), (4, 4, 2), (5, 4, 3)):
        yield generate(
            "random",
            seed,
            groups=groups,
            device_groups=device_groups,
            memory=1.5 if seed == 4 else 4.0,
            name=f"tiny-g{groups}-m{device_groups}-s{seed}",
        )
