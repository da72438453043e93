"""The names that the ``transformers`` library gives to the parameters of a model.

Plans for a model carry them, so that a hook finds each parameter of the model that is trained. Experts have the names
of checkpoints, one weight each; a library that keeps all experts of a block in one tensor has others.
"""

import dataclasses
import re
from collections.abc import Mapping

from ddlopt.instances.workloads.networks.layers import Layer, ParameterTensors
from ddlopt.instances.workloads.networks.transformers import Transformer
from ddlopt.instances.workloads.training import Workload

_LLAMA = {
    "embedding.words": "model.embed_tokens",
    "block.*.norm.0": "model.layers.*.input_layernorm",
    "block.*.attention.query": "model.layers.*.self_attn.q_proj",
    "block.*.attention.key": "model.layers.*.self_attn.k_proj",
    "block.*.attention.value": "model.layers.*.self_attn.v_proj",
    "block.*.attention.output": "model.layers.*.self_attn.o_proj",
    "block.*.norm.1": "model.layers.*.post_attention_layernorm",
    "block.*.feed.gate": "model.layers.*.mlp.gate_proj",
    "block.*.feed.up": "model.layers.*.mlp.up_proj",
    "block.*.feed.down": "model.layers.*.mlp.down_proj",
    "norm": "model.norm",
    "words": "lm_head",
    "classes": "score",
}
_MIXTRAL = _LLAMA | {
    "block.*.router": "model.layers.*.block_sparse_moe.gate",
    "block.*.experts.*.gate": "model.layers.*.block_sparse_moe.experts.*.w1",
    "block.*.experts.*.up": "model.layers.*.block_sparse_moe.experts.*.w3",
    "block.*.experts.*.down": "model.layers.*.block_sparse_moe.experts.*.w2",
}
_GPT2 = {
    "embedding.words": "transformer.wte",
    "embedding.positions": "transformer.wpe",
    "block.*.norm.0": "transformer.h.*.ln_1",
    "block.*.attention.projections": "transformer.h.*.attn.c_attn",
    "block.*.attention.output": "transformer.h.*.attn.c_proj",
    "block.*.norm.1": "transformer.h.*.ln_2",
    "block.*.feed.0": "transformer.h.*.mlp.c_fc",
    "block.*.feed.1": "transformer.h.*.mlp.c_proj",
    "norm": "transformer.ln_f",
    "words": "lm_head",
    "classes": "score",
}
_BERT = {
    "embedding.words": "bert.embeddings.word_embeddings",
    "embedding.positions": "bert.embeddings.position_embeddings",
    "embedding.segments": "bert.embeddings.token_type_embeddings",
    "embedding.norm": "bert.embeddings.LayerNorm",
    "block.*.attention.query": "bert.encoder.layer.*.attention.self.query",
    "block.*.attention.key": "bert.encoder.layer.*.attention.self.key",
    "block.*.attention.value": "bert.encoder.layer.*.attention.self.value",
    "block.*.attention.output": "bert.encoder.layer.*.attention.output.dense",
    "block.*.norm.0": "bert.encoder.layer.*.attention.output.LayerNorm",
    "block.*.feed.0": "bert.encoder.layer.*.intermediate.dense",
    "block.*.feed.1": "bert.encoder.layer.*.output.dense",
    "block.*.norm.1": "bert.encoder.layer.*.output.LayerNorm",
    "pooler": "bert.pooler.dense",
    "transform": "cls.predictions.transform.dense",
    "transform.norm": "cls.predictions.transform.LayerNorm",
    "words": "cls.predictions",
    "classes": "classifier",
}
_ROBERTA = {ours: theirs.replace("bert.", "roberta.", 1) for ours, theirs in _BERT.items()} | {
    "transform": "lm_head.dense",
    "transform.norm": "lm_head.layer_norm",
    "words": "lm_head",
}
_NAMES: Mapping[str, Mapping[str, str]] = {
    "gpt2": _GPT2,
    "llama": _LLAMA,
    "mistral": _LLAMA,
    "mixtral": _MIXTRAL,
    "qwen2": _LLAMA,
    "gemma": _LLAMA,
    "bert": _BERT,
    "roberta": _ROBERTA,
}
"""Of layers, by family; a star is the number of a block or an expert."""
_OF_CLASSES: Mapping[tuple[str, str], Mapping[str, str]] = {
    ("gpt2", "ForTokenClassification"): {"classes": "classifier"},
    ("roberta", "ForSequenceClassification"): {"pooler": "classifier.dense", "classes": "classifier.out_proj"},
}
"""Where a class of a family has other names."""
_BARE = re.compile(r"^(model|transformer|bert|roberta)\.")
"""What stands before all names unless the class is the bare model."""
_TENSORS = {"scale": "weight", "shift": "bias"}
_TRANSPOSED = re.compile(r"\.c_(attn|proj|fc)$")
"""Layers of GPT-2, whose weights are (inputs, outputs)."""
_PLACE = re.compile(r"\.(\d+)(?=\.)")


def named_workload(sizes: Transformer, ending: str, batch_per_gpu: int) -> Workload:
    """The layers, with parameters named and shaped as the model has them; of an unknown family as they are.

    Parameters
    ----------
    sizes : Transformer
    ending : str
        What the name of the model's class ends with, e.g. ``ForCausalLM``.
    batch_per_gpu : int
    """
    known = dict(_NAMES.get(sizes.name, {})) | dict(_OF_CLASSES.get((sizes.name, ending), {}))
    if ending == "ForQuestionAnswering":
        known["classes"] = "qa_outputs"
    if ending == "Model":
        known = {ours: _BARE.sub("", theirs) for ours, theirs in known.items()}
    workload = sizes.workload(batch_per_gpu)
    return dataclasses.replace(workload, layers=tuple(_named(layer, known) for layer in workload.layers))


def _named(layer: Layer, known: Mapping[str, str]) -> Layer:
    theirs = known.get(_PLACE.sub(".*", layer.name))
    if theirs is None:
        return layer
    for place in _PLACE.findall(layer.name):
        theirs = theirs.replace("*", place, 1)
    return dataclasses.replace(layer, name=theirs, tensors=_tensors(layer.tensors, bool(_TRANSPOSED.search(theirs))))


def _tensors(tensors: ParameterTensors, transposed: bool) -> ParameterTensors:
    return tuple((_TENSORS.get(name, name), shape[::-1] if transposed else shape) for name, shape in tensors)
