"""What PyTorch writes of its own models, and of those of torchvision and transformers: parameters are the models' own.

`DDLOPT_TORCH_PYTHON` may name a Python that has torch with onnx and, if they are to be tried, onnxscript, torchvision
and transformers. `pytest tests/instances/readers/test_onnx_exports.py -m slow -s` prints a table.
"""

import json
import os
import subprocess
import sys
from importlib.util import find_spec

import pytest

from ddlopt.instances.readers.models.onnx_file import read_model
from ddlopt.instances.readers.models.onnx_layers import layers_of, told_of
from ddlopt.instances.readers.models.onnx_pieces import graph_of_model
from ddlopt.instances.readers.models.onnx_step import step_of
from ddlopt.models.reading import reading_up_to

pytest.importorskip("onnx", reason="the package onnx is not installed: pip install 'ddlopt[onnx]'")
PYTHON = os.environ.get("DDLOPT_TORCH_PYTHON") or (sys.executable if find_spec("torch") else None)
MOST_BYTES = 2**28

EXPORT = """
import importlib.util
import json
import logging
import sys
import warnings

warnings.filterwarnings("ignore")
logging.disable(logging.WARNING)
import torch
from torch import nn
from torch.nn import functional as F

torch.manual_seed(0)
torch.set_num_threads(1)


class Padded(nn.Module):
    def __init__(self):
        super().__init__()
        self.c, self.g, self.l = nn.Conv2d(3, 8, 3), nn.GroupNorm(2, 8), nn.Linear(8, 4)

    def forward(self, x):
        return self.l(F.relu(self.g(self.c(F.pad(x, (1, 1, 1, 1))))).mean((2, 3)))


class Viewed(nn.Module):
    def __init__(self):
        super().__init__()
        self.c, self.l = nn.Conv2d(3, 4, 3, padding=1), nn.Linear(4 * 64, 10)

    def forward(self, x):
        return self.l(F.relu(self.c(x)).view(x.size(0), -1))


class Chunked(nn.Module):
    def __init__(self):
        super().__init__()
        self.q, self.o = nn.Linear(16, 48), nn.Linear(16, 16)

    def forward(self, x):
        q, k, v = self.q(x).chunk(3, -1)
        return self.o(F.scaled_dot_product_attention(q, k, v))


class Tied(nn.Module):
    def __init__(self):
        super().__init__()
        self.e, self.l = nn.Embedding(50, 8), nn.Linear(8, 8)

    def forward(self, x):
        return F.linear(F.gelu(self.l(self.e(x))), self.e.weight)


class Recurrent(nn.Module):
    def __init__(self):
        super().__init__()
        self.r, self.l = nn.LSTM(8, 16, num_layers=2, batch_first=True), nn.Linear(16, 4)

    def forward(self, x):
        return self.l(self.r(x)[0])


class First(nn.Module):
    def __init__(self, model, *names):
        super().__init__()
        self.model, self.names = model, names

    def forward(self, *inputs):
        return self.model(**dict(zip(self.names, inputs))).logits


IMAGE, WORDS = (torch.randn(2, 3, 8, 8),), (torch.randint(3, 50, (2, 5)),)
LARGE = (torch.randn(2, 3, 224, 224),)
MODELS = {
    "padded": lambda: (Padded(), IMAGE),
    "viewed": lambda: (Viewed(), IMAGE),
    "chunked": lambda: (Chunked(), (torch.randn(2, 5, 16),)),
    "tied": lambda: (Tied(), WORDS),
    "recurrent": lambda: (Recurrent(), (torch.randn(2, 5, 8),)),
    "weight norm": lambda: (nn.utils.parametrizations.weight_norm(nn.Linear(8, 6)), (torch.randn(2, 8),)),
    "encoder": lambda: (nn.TransformerEncoderLayer(16, 4, 32, 0.0, batch_first=True), (torch.randn(2, 5, 16),)),
}
if importlib.util.find_spec("torchvision"):
    import torchvision

    for name in ("resnet18", "squeezenet1_1", "mobilenet_v3_small", "convnext_tiny", "swin_t"):
        MODELS[name] = lambda name=name: (getattr(torchvision.models, name)(weights=None), LARGE)
if importlib.util.find_spec("transformers"):
    import transformers as hf

    sizes = dict(vocab_size=60, hidden_size=32, num_hidden_layers=2, num_attention_heads=4, intermediate_size=64)
    sizes |= dict(max_position_embeddings=40)
    gpt2 = dict(vocab_size=60, n_positions=40, n_embd=32, n_layer=2, n_head=4)
    t5 = dict(vocab_size=60, d_model=32, d_kv=8, d_ff=64, num_layers=2, num_heads=4)
    vit = dict(hidden_size=32, num_hidden_layers=2, num_attention_heads=4, intermediate_size=64)
    vit |= dict(image_size=8, patch_size=4)
    albert = sizes | dict(embedding_size=16)
    llama = sizes | dict(num_key_value_heads=2, use_cache=False)
    both, seen = ("input_ids", "decoder_input_ids"), ("input_ids", "attention_mask")
    MODELS |= {
        "bert": lambda: (First(hf.BertForMaskedLM(hf.BertConfig(**sizes)), "input_ids"), WORDS),
        "albert": lambda: (First(hf.AlbertForMaskedLM(hf.AlbertConfig(**albert)), "input_ids"), WORDS),
        "llama": lambda: (
            First(hf.LlamaForCausalLM(hf.LlamaConfig(**llama)), *seen), (*WORDS, torch.ones(2, 5, dtype=torch.long))
        ),
        "gpt2": lambda: (First(hf.GPT2LMHeadModel(hf.GPT2Config(use_cache=False, **gpt2)), "input_ids"), WORDS),
        "t5": lambda: (First(hf.T5ForConditionalGeneration(hf.T5Config(use_cache=False, **t5)), *both), 2 * WORDS),
        "vit": lambda: (First(hf.ViTForImageClassification(hf.ViTConfig(**vit)), "pixel_values"), IMAGE),
    }

EXPORTERS = {
    "script": dict(dynamo=False, opset_version=17),
    "script as trained": dict(
        dynamo=False, opset_version=17, training=torch.onnx.TrainingMode.TRAINING, do_constant_folding=False
    ),
    "dynamo": dict(dynamo=True, external_data=False, verbose=False),
}
found = []
for name, make in MODELS.items():
    model, inputs = make()
    with torch.no_grad():
        for parameter in model.parameters():  # exporters make one of those that are equal before training
            parameter.normal_(0, 0.02)
    normalised = sum(each.num_features for each in model.modules() if isinstance(each, nn.BatchNorm2d))
    for exporter, options in EXPORTERS.items():
        path = f"{name}-{exporter}.onnx"
        try:
            torch.onnx.export(model.train(exporter == "script as trained"), inputs, path, **options)
        except Exception as problem:
            path, told = None, f"{type(problem).__name__}: {str(problem).strip().splitlines()[0][:80]}"
        parameters = sum(each.numel() for each in model.parameters())
        found.append((name, exporter, path, parameters, normalised, "" if path else told))
with open("exports.json", "w") as file:
    json.dump(found, file)
"""

FOLDED = {
    ("bert", "dynamo"): 32 * (40 - 5) + 32 * (2 - 1),
    ("albert", "dynamo"): 16 * (40 - 5) + 16 * (2 - 1),
    ("gpt2", "dynamo"): 32 * (40 - 5),
    ("weight norm", "script"): 6,
    ("weight norm", "dynamo"): 6,
}
"""Numbers that are not in the file: rows for places and kinds of words that do not occur, lengths of a norm."""
PUBLISHED = {
    "resnet18": 1.814, "squeezenet1_1": 0.349, "mobilenet_v3_small": 0.057, "convnext_tiny": 4.456, "swin_t": 4.491,
}  # fmt: skip
"""Billions of multiplications with an addition, as torchvision gives them for images of 224 pixels a side."""


@pytest.mark.slow
@pytest.mark.skipif(PYTHON is None, reason="needs PyTorch, here or in the Python of DDLOPT_TORCH_PYTHON")
def test_exports_have_the_parameters_of_their_models(tmp_path):
    """Where nothing is folded all of them; folded batch normalisation leaves one number a channel of two."""
    (tmp_path / "export.py").write_text(EXPORT, encoding="utf-8")
    made = subprocess.run([str(PYTHON), "export.py"], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert made.returncode == 0, made.stderr[-2000:]
    exports = json.loads((tmp_path / "exports.json").read_text())
    if not any(path for _, _, path, *_ in exports):
        pytest.skip(f"torch is there, but exports nothing: {exports[0][-1]}")
    wrong = []
    print()
    for name, exporter, path, parameters, normalised, told in exports:
        if path is None:
            print(f"| {name} | {exporter} | {parameters} | not exported: {told} |")
            continue
        with reading_up_to(MOST_BYTES):
            model = read_model(tmp_path / path)
        layers = [each.layer for each in layers_of(model)]
        folded = 0 if exporter == "script as trained" else normalised
        expected = parameters - folded - FOLDED.get((name, exporter), 0)
        counted = sum(layer.parameters for layer in layers)
        in_step = sum(each.gradient for each in step_of(model))
        pieces = graph_of_model(model).pieces
        in_pieces = sum(each.parameters for piece in pieces for each in (*piece.split, *piece.after))
        flops = sum(layer.flops for layer in layers)
        print(f"| {name} | {exporter} | {parameters} | {counted} | {flops:.3g} operations | {told_of(model)[2:90]} |")
        if not counted == in_step == in_pieces == expected:
            wrong.append((name, exporter, expected, counted, in_step, in_pieces))
        if exporter == "script" and name in PUBLISHED:
            assert flops == pytest.approx(2e9 * PUBLISHED[name], rel=0.02), name
    assert not wrong
