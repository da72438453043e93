"""Measured training jobs: a file that the script wrote, the script itself where PyTorch is, one line for bad input."""

import ast
import json
import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest
from refusals import one_line

import ddlopt
from ddlopt.cli import run
from ddlopt.instances.readers import convert
from ddlopt.models.errors import InstanceError

RECORDED = Path(__file__).parents[2] / "cases" / "profile.json"
"""A convolution with normalisation and two dense layers, measured on a CPU."""
PYTHON = os.environ.get("DDLOPT_TORCH_PYTHON") or (sys.executable if find_spec("torch") else None)

JOB = """
import torch


def make():
    torch.manual_seed(0)
    shared = torch.nn.Linear(16, 16)
    model = torch.nn.ModuleDict({"first": torch.nn.Linear(32, 16), "shared": shared, "spare": torch.nn.Linear(2, 2)})

    def loss():
        inner = torch.relu(model["first"](torch.ones(8, 5, 32)))
        return model["shared"](model["shared"](inner)).square().mean()

    return model, loss
"""


def test_a_recorded_job_becomes_gradients_to_compress():
    data = json.loads(RECORDED.read_text())
    read = convert(RECORDED, "profile", nodes=4, gpus_per_node=1)
    assert [(each.name, list(each.shape), each.ready_s) for each in read.gradients] == [
        (each["name"], each["shape"], each["ready_s"]) for each in data["gradients"]
    ]
    assert "measured on cpu" in read.source
    factors = {each.name for each in read.gradients if any("sfb" in option.label for option in read.menus[each.menu])}
    assert factors == {"4.weight", "6.weight"}
    assert ddlopt.solve(read, "espresso").checked


def test_a_recorded_job_needs_links():
    data = json.loads(RECORDED.read_text())
    read = convert(RECORDED, "profile-topology", servers=4, degree=2)
    assert read.compute_s == data["forward_s"] + data["backward_s"]
    assert read.allreduce_groups[0].gradient_bytes == 4 * (8 * 27 + 8 + 16 + 2048 * 64 + 64 + 640 + 10)


def test_the_script_is_printed_and_imports_nothing_but_pytorch(capsys):
    assert run(["profile-script"]) == 0
    tree = ast.parse(capsys.readouterr().out)
    names = {each.names[0].name for each in ast.walk(tree) if isinstance(each, ast.Import)}
    names |= {str(each.module) for each in ast.walk(tree) if isinstance(each, ast.ImportFrom)}
    assert {name.partition(".")[0] for name in names} - sys.stdlib_module_names == {"torch"}


@pytest.mark.slow
@pytest.mark.skipif(PYTHON is None, reason="needs PyTorch, here or in the Python of DDLOPT_TORCH_PYTHON")
def test_the_script_measures_a_job(tmp_path, capsys):
    """What is used twice has one gradient, ready after both; what is not used is told; vectors of samples are rows."""
    assert run(["profile-script"]) == 0
    (tmp_path / "profile_job.py").write_text(capsys.readouterr().out, encoding="utf-8")
    (tmp_path / "my_job.py").write_text(JOB, encoding="utf-8")
    arguments = [PYTHON, "profile_job.py", "my_job:make", "--samples", "8", "--steps", "3"]
    subprocess.run(arguments, cwd=tmp_path, check=True, capture_output=True, env={**os.environ, "OMP_NUM_THREADS": "1"})
    data = json.loads((tmp_path / "profile.json").read_text())
    assert data["unused"] == ["spare.weight", "spare.bias"]
    assert [layer["name"] for layer in data["layers"]] == ["first", "shared"]
    assert [layer["rows"] for layer in data["layers"]] == [40, 40]
    layers = [each["layer"] for each in data["gradients"]]
    assert layers == ["shared", "shared", "first", "first"]
    assert sum(layer["backward_s"] for layer in data["layers"]) <= data["backward_s"]
    assert [layer["output_bytes"] for layer in data["layers"]] == [40 * 16 * 4, 2 * 40 * 16 * 4]
    stages = convert(tmp_path / "profile.json", "profile-pipeline", global_batch=16)
    assert [each.name for each in stages.layers] == ["first", "shared"]
    read = convert(tmp_path / "profile.json", "profile", nodes=2)
    assert sorted(each.shape for each in read.gradients) == [(16,), (16,), (16, 16), (16, 32)]


APART = """
import torch


class Apart(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.block = torch.nn.TransformerEncoderLayer(16, 4, 32, batch_first=True)
        self.last = torch.nn.Linear(16, 4)

    def forward(self, x):
        return torch.nn.functional.linear(self.block(x), self.last.weight, self.last.bias)


def make():
    model, x = Apart(), torch.randn(8, 5, 16)
    return model, lambda: model(x).square().mean()
"""


@pytest.mark.slow
@pytest.mark.skipif(PYTHON is None, reason="needs PyTorch, here or in the Python of DDLOPT_TORCH_PYTHON")
def test_the_script_measures_modules_whose_weights_others_multiply_by(tmp_path, capsys):
    assert run(["profile-script"]) == 0
    (tmp_path / "profile_job.py").write_text(capsys.readouterr().out, encoding="utf-8")
    (tmp_path / "my_job.py").write_text(APART, encoding="utf-8")
    arguments = [PYTHON, "profile_job.py", "my_job:make", "--samples", "8", "--steps", "3"]
    subprocess.run(arguments, cwd=tmp_path, check=True, capture_output=True, env={**os.environ, "OMP_NUM_THREADS": "1"})
    read = convert(tmp_path / "profile.json", "profile", nodes=2)
    assert sum(each.elements for each in read.gradients) == 4 * 256 + 64 + 2 * 512 + 48 + 4 * 16 + 64 + 4
    assert "no sufficient factors of 3 matrices" in read.source


@pytest.mark.parametrize("ran", [True, False])
def test_a_weight_that_another_module_multiplies_by_is_read(ran, tmp_path):
    """Files of old scripts name a layer that is not there; where no module runs by itself there are no layers."""
    data = json.loads(RECORDED.read_text())
    data["layers"] = [each for each in data["layers"] if each["name"] != "4"] if ran else []
    path = tmp_path / "profile.json"
    path.write_text(json.dumps(data), encoding="utf-8")
    read, whole = convert(path, "profile", nodes=4), convert(RECORDED, "profile", nodes=4)
    assert [(each.name, each.shape) for each in read.gradients] == [(each.name, each.shape) for each in whole.gradients]
    assert f"no sufficient factors of {1 if ran else 2} matrices" in read.source
    assert "no sufficient factors" not in whole.source


def without(field):
    return lambda data: data.pop(field)


def with_gradient(place, **fields):
    return lambda data: data["gradients"][place].update(fields)


BAD = {
    "no profile": (without("format"), "format is None; expected 'ddlopt-profile/1'"),
    "no layers": (without("layers"), "layers is missing"),
    "no name of a layer": (with_gradient(1, layer=4), "gradients[1].layer ('6.weight') is 4; expected a name"),
    "no gradients": (lambda data: data["gradients"].clear(), "gradients is empty"),
    "no time": (lambda data: data["gradients"][2].pop("ready_s"), "gradients[2].ready_s ('4.bias') is None"),
    "negative": (with_gradient(0, ready_s=-1.0), "gradients[0].ready_s ('6.bias') is -1.0; expected seconds"),
    "negative layer": (lambda data: data["layers"][0].update(forward_s=-2), "layers[0].forward_s ('0') is -2"),
    "order": (with_gradient(1, ready_s=0.25), "gradients[2] ('4.bias') is ready after"),
    "late": (with_gradient(-1, ready_s=9.0), "gradient '0.bias' is ready after 9 s, but the backward pass takes"),
    "twice": (with_gradient(1, name="6.bias"), "there are two gradients of '6.bias'"),
    "shape": (with_gradient(1, shape=[]), "gradients[1].shape ('6.weight') is []"),
    "size": (with_gradient(1, shape=[3, 0.5]), "gradients[1].shape ('6.weight') is 0.5; expected a whole number"),
    "large": (
        with_gradient(1, shape=[10**12, 10**12]),
        "'6.weight' has 1e+24 numbers; at most 1e+12 are read",
    ),
    "unused": (lambda data: data.update(unused="spare"), "unused is 'spare'; expected a list of names"),
    "samples": (without("samples"), "samples is None; expected a whole number"),
    "no object": (lambda data: data["gradients"].insert(0, 5), "gradients[0] is 5; expected an object"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_files_are_refused_in_a_line(case, tmp_path):
    data = json.loads(RECORDED.read_text())
    spoil, told = BAD[case]
    spoil(data)
    path = tmp_path / "profile.json"
    path.write_text(json.dumps(data), encoding="utf-8")
    with one_line(InstanceError, told):
        convert(path, "profile")


def test_what_is_no_number_is_refused_in_a_line(tmp_path):
    path = tmp_path / "profile.json"
    path.write_text(RECORDED.read_text().replace(str(json.loads(RECORDED.read_text())["forward_s"]), "NaN", 1))
    with one_line(InstanceError, "NaN is not a number that JSON knows"):
        convert(path, "profile")
