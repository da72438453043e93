"""A compression plan kept to its word: the error that it promises beside the one that training with it has.

    python examples/run_plan.py

Solves the bundled instance whose errors were measured on a perceptron that learns digits, then trains that perceptron
with the chosen compressors on eight simulated workers. Needs scikit-learn: pip install 'ddlopt[train]'.
"""

import argparse

import numpy as np

import ddlopt
from ddlopt.instances.generators.compression.measured import FIRST, setting_of
from ddlopt.instances.workloads.compression.measured import run_plan
from ddlopt.instances.workloads.digits import Training

parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
parser.add_argument("--instance", default="compression/measured-digits-w8-10g")
parser.add_argument("--steps", type=int, default=20, help="steps of training with compression")
parser.add_argument("--train", type=int, default=120, help="steps after which accuracies are compared; 0: not at all")
parser.add_argument("--seed", type=int, default=None, help="of the training; by default that of the measurement")
options = parser.parse_args()

instance = ddlopt.load(options.instance)
result = ddlopt.solve(instance)
print(f"{instance.name}: {1e3 * result.objective:.4g} ms an iteration, promised error {result.details['error']:.4f}")

# The measurement drew its training seed from the seed of the instance, which is 1.
seed = int(np.random.default_rng(1).integers(2**31)) if options.seed is None else options.seed
training = Training(workers=instance.cluster.workers, seed=seed)
chosen = [instance.option(i, choice) for i, choice in enumerate(result.solution.choices)]
run = run_plan([setting_of(option) for option in chosen], training, FIRST, options.steps)
for gradient, option, measured in zip(instance.gradients, chosen, run.errors.mean(axis=0), strict=True):
    print(f"  {gradient.name:14} {option.label:14} promised {option.error:.2e}, measured {measured:.2e}")
print(f"error of the whole gradient over {options.steps} steps: {run.error:.4f}")

plain = [setting_of(instance.option(i, 0)) for i in range(len(chosen))]
planned = [setting_of(option) for option in chosen]
ways = {"without compression": (plain, False), "with the plan": (planned, False)}
ways["with the plan and error feedback"] = (planned, True)
for name, (settings, feedback) in ways.items() if options.train else ():
    accuracy = run_plan(settings, training, 0, options.train, feedback).accuracy
    print(f"accuracy after {options.train} steps {name}: {100 * accuracy:.1f} %")
