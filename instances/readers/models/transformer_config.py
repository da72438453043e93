"""Transformers from the ``config.json`` that their makers publish, as the ``transformers`` library writes it.

Read are sizes alone; the file is data, and what is not about sizes is passed over.
"""

from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

from ddlopt.instances.readers.models import jobs
from ddlopt.instances.readers.models.transformer_names import named_workload
from ddlopt.instances.workloads.codesign.transformer_graphs import transformer_graph
from ddlopt.instances.workloads.networks.transformers import Transformer
from ddlopt.instances.workloads.precision import BF16, FP32, Precision
from ddlopt.models.errors import InstanceError, OptionError
from ddlopt.models.reading import UnreadableError, parsed, read_text

_LONGEST = 2048
"""Tokens of a sample unless told otherwise, where the context is longer."""
# As many as no model comes near: a slip of the pen must not fill the memory.
_MOST = {"layers": 10_000, "experts": 4096}
_LARGEST = 10**9
"""Of any size."""
_USUAL = {
    "layers": "num_hidden_layers",
    "hidden": "hidden_size",
    "heads": "num_attention_heads",
    "vocabulary": "vocab_size",
    "width": "intermediate_size",
    "context": "max_position_embeddings",
}
_GPT2 = {
    "layers": "n_layer",
    "hidden": "n_embd",
    "heads": "n_head",
    "vocabulary": "vocab_size",
    "width": "n_inner",
    "context": "n_positions",
}
_CONTEXTS = ("max_sequence_length", "max_seq_len", "seq_length")
"""Other names of the context, where it has no parameters."""
_LLAMA = {
    "norm_shift": False,
    "gated": True,
    "qkv_bias": False,
    "output_bias": False,
    "feed_bias": False,
    "head_layer": "words",
}
_BERT = {"norm_first": False, "head_layer": "pooler"}
FAMILIES: Mapping[str, Mapping[str, Any]] = {
    "gpt2": {"fused": True, "head_layer": "tied"},
    "llama": _LLAMA,
    "mistral": _LLAMA,
    "mixtral": _LLAMA,
    "qwen2": {**_LLAMA, "qkv_bias": True},
    "gemma": {**_LLAMA, "head_layer": "tied"},
    "bert": _BERT,
    "roberta": _BERT,
}
"""What distinguishes families, by ``model_type``."""
_ATTENTION_BIAS = ("llama", "gemma")
"""Families that have a bias in all four projections of attention where ``attention_bias`` says so; others ignore it."""
_LABELLED: Mapping[str, Mapping[str, Any]] = {
    "ForTokenClassification": {"head_layer": "none", "label_bias": True},
    "ForQuestionAnswering": {"head_layer": "none", "label_bias": True, "labels": 2},
}
_DECODER_HEADS: Mapping[str, Mapping[str, Any]] = {
    "ForCausalLM": {},
    "LMHeadModel": {},
    "ForSequenceClassification": {"head_layer": "none", "label_bias": False},
    **_LABELLED,
    "Model": {"head_layer": "none"},
}
_ENCODER_HEADS: Mapping[str, Mapping[str, Any]] = {
    "ForMaskedLM": {"head_layer": "masked"},
    "ForCausalLM": {"head_layer": "masked"},
    "LMHeadModel": {"head_layer": "masked"},
    "ForSequenceClassification": {"head_layer": "pooler", "label_bias": True},
    "ForMultipleChoice": {"head_layer": "pooler", "label_bias": True, "labels": 1},
    **_LABELLED,
    "Model": {"head_layer": "pooler"},
}
"""What stands at the end, by what the name of the class in ``architectures`` ends with, the longest first."""


def transformer_network(path: str | Path, *, sequence: int | None = None) -> jobs.Network:
    """The transformer of a configuration.

    Parameters
    ----------
    path : str or Path
        ``config.json`` of GPT-2, Llama, Mistral, Mixtral, Qwen2, Gemma, BERT or RoBERTa.
    sequence : int, optional
        Tokens of a sample; by default the context, at most 2048.

    Raises
    ------
    InstanceError
        If it is no such configuration.
    OptionError
        If samples are longer than the context.
    """
    config = _config(path)
    sizes = config.sizes(sequence)
    told = f"layers as {Path(path).name} says ({sizes.name}), on {sizes.sequence} tokens"
    workload = partial(named_workload, sizes, config.ending)
    return jobs.Network(sizes.name, told, workload, partial(transformer_graph, sizes), sizes.step, config.precision)


read_compression = jobs.reader(transformer_network, jobs.compression)
read_topology = jobs.reader(transformer_network, jobs.topology)
read_codesign = jobs.reader(transformer_network, jobs.codesign)
read_deployment = jobs.reader(transformer_network, jobs.deployment)


def read_transformer(path: str | Path, sequence: int | None = None) -> Transformer:
    """The sizes that a configuration tells; see :func:`transformer_network`."""
    return _config(path).sizes(sequence)


def _config(path: str | Path) -> "_Config":
    try:
        data = parsed(read_text(path), finite=False)
    except UnreadableError as problem:
        raise InstanceError(f"{path}: cannot be read: {problem}") from None
    except ValueError as problem:
        raise InstanceError(f"{path}: not valid JSON: {problem}") from None
    if not isinstance(data, Mapping):
        raise InstanceError(f"{path}: it is no configuration of a transformer; expected an object with 'model_type'")
    return _Config(path, data)


class _Config:
    """A configuration's fields, each with the name that its family gives it."""

    def __init__(self, path: str | Path, data: Mapping[str, Any]) -> None:
        self.path, self.data = path, data
        family = data.get("model_type")
        if not isinstance(family, str) or family not in FAMILIES:
            raise InstanceError(f"{path}: model_type is {family!r}; what is read: {', '.join(FAMILIES)}")
        self.family = family
        self.names = _GPT2 if family == "gpt2" else _USUAL
        self.heads = _ENCODER_HEADS if family in ("bert", "roberta") else _DECODER_HEADS
        self.ending = self._ending()

    def sizes(self, sequence: int | None) -> Transformer:
        family = self.family
        hidden, heads, layers = (self.number(self.names[each]) for each in ("hidden", "heads", "layers"))
        self.refuse_many("layers", self.names["layers"], layers)
        context = self.context()
        keys = heads if self.trains_positions else self.number("num_key_value_heads", heads)
        if heads % keys:
            raise InstanceError(
                f"{self.path}: num_key_value_heads is {keys}, which does not divide {self.names['heads']} {heads}"
            )
        if self.data.get("head_dim") is None and hidden % heads:
            raise InstanceError(
                f"{self.path}: {self.names['heads']} is {heads}, which does not divide {self.names['hidden']} {hidden}"
            )
        experts = self.number("num_local_experts") if family == "mixtral" else 0
        chosen = self.number("num_experts_per_tok") if experts else 0
        self.refuse_many("experts", "num_local_experts", experts)
        if chosen > experts:
            raise InstanceError(f"{self.path}: num_experts_per_tok is {chosen}, but there are {experts} experts")
        options = {**FAMILIES[family], **self.head()}
        if "attention_bias" in self.data and family in _ATTENTION_BIAS:
            options["qkv_bias"] = options["output_bias"] = self.flag("attention_bias", False)
        if family == "llama":
            options["feed_bias"] = self.flag("mlp_bias", False)
        positions = context or 0 if self.trains_positions else 0
        return Transformer(
            name=family,
            layers=layers,
            hidden=hidden,
            heads=heads,
            vocabulary=self.number(self.names["vocabulary"]),
            width=self.number(self.names["width"], 4 * hidden if family == "gpt2" else None),
            sequence=self.sequence(sequence, context),
            key_value_heads=keys,
            head=self.number("head_dim", hidden // heads),
            positions=positions,
            segments=self.number("type_vocab_size") if family in ("bert", "roberta") else 0,
            experts=experts,
            chosen=chosen,
            **options,
        )

    def _ending(self) -> str:
        """What the name of the model's class ends with, by ``architectures``; where these are not given, the usual."""
        named = self.data.get("architectures") or ["ForCausalLM" if self.heads is _DECODER_HEADS else "Model"]
        name = named[0] if isinstance(named, list) else named
        ending = next((each for each in self.heads if isinstance(name, str) and name.endswith(each)), None)
        if ending is None:
            raise InstanceError(
                f"{self.path}: architectures[0] is {name!r}; what is read ends with {', '.join(self.heads)}"
            )
        return ending

    @property
    def precision(self) -> Precision:
        """What weights are said to be in; single precision if nothing is said."""
        kind = str(self.data.get("torch_dtype") or self.data.get("dtype") or "float32").removeprefix("torch.")
        return FP32 if kind == "float32" else BF16

    @property
    def trains_positions(self) -> bool:
        return self.family in ("gpt2", "bert", "roberta")

    def head(self) -> dict[str, Any]:
        """What stands at the end, by ``architectures``; that of the family where these are not given."""
        head = dict(self.heads[self.ending])
        if "label_bias" in head and "labels" not in head:
            classes = self.data.get("id2label")
            head["labels"] = self.number("num_labels", len(classes) if isinstance(classes, Mapping) and classes else 2)
        last = head.get("head_layer", FAMILIES[self.family]["head_layer"])
        if last in ("words", "tied"):
            head["head_layer"] = "tied" if self.flag("tie_word_embeddings", last == "tied") else "words"
        elif last == "masked" and not self.flag("tie_word_embeddings", True):
            raise InstanceError(
                f"{self.path}: tie_word_embeddings is false; {self.family}…{self.ending} is read where it is true"
            )
        return head

    def context(self) -> int | None:
        """Tokens of a sample at most; None where the file does not say so and need not."""
        if self.trains_positions:
            return self.number(self.names["context"])
        name = next((each for each in (self.names["context"], *_CONTEXTS) if self.data.get(each) is not None), None)
        return None if name is None else self.number(name)

    def sequence(self, asked: int | None, context: int | None) -> int:
        if context is None:
            if asked is None:
                raise InstanceError(
                    f"{self.path}: {self.names['context']} is missing; say how long samples are (sequence, in tokens)"
                )
            context = _LARGEST
        if asked is None:
            return min(context, _LONGEST)
        if not 1 <= asked <= context:
            raise OptionError(f"sequence is {asked}; {self.path} has a context of {context}, so use 1..{context}")
        return asked

    def number(self, name: str, otherwise: int | None = None) -> int:
        """A field that is a positive whole number; ``otherwise``: if it is left out or null."""
        value = self.data.get(name)
        if value is None and otherwise is not None:
            return otherwise
        if value is None:
            raise InstanceError(f"{self.path}: {name} is missing, which a {self.family} needs")
        if not isinstance(value, int) or isinstance(value, bool) or not 1 <= value <= _LARGEST:
            raise InstanceError(f"{self.path}: {name} is {value!r}; it must be a whole number in 1..{_LARGEST}")
        return value

    def flag(self, name: str, otherwise: bool) -> bool:
        value = self.data.get(name, otherwise)
        if not isinstance(value, bool):
            raise InstanceError(f"{self.path}: {name} is {value!r}; it must be true or false")
        return value

    def refuse_many(self, what: str, name: str, count: int) -> None:
        if count > _MOST[what]:
            raise InstanceError(f"{self.path}: {name} is {count}; at most {_MOST[what]} are read")
