"""Transformers from the ``config.json`` that their makers publish, as the ``transformers`` library writes it.

Read are sizes alone; the file is data, and what is not about sizes is passed over.
"""

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from ddlopt.instances.readers.models import jobs
from ddlopt.instances.readers.models.config_fields import LARGEST, Fields
from ddlopt.instances.readers.models.transformer_families import ENCODERS, FAMILIES, NESTED, OTHER_WISE, Family
from ddlopt.instances.readers.models.transformer_mixed import (
    with_chosen_tokens,
    with_delta_rule,
    with_lightning,
    with_mamba,
    with_state_space,
    with_two_kinds_of_heads,
)
from ddlopt.instances.readers.models.transformer_names import named_workload
from ddlopt.instances.readers.models.transformer_pairs import PAIRS, length
from ddlopt.instances.workloads.codesign.transformer_graphs import transformer_graph
from ddlopt.instances.workloads.networks.transformer_parts import Latent
from ddlopt.instances.workloads.networks.transformer_step import transformer_step
from ddlopt.instances.workloads.networks.transformers import Transformer
from ddlopt.instances.workloads.precision import BF16, FP32, Precision
from ddlopt.models.errors import InstanceError
from ddlopt.models.reading import UnreadableError, parsed, read_text

_CONTEXTS = ("max_sequence_length", "max_seq_len", "seq_length")
"""Other names of the context, where it has no parameters."""
_LABELLED: Mapping[str, Mapping[str, Any]] = {
    "ForTokenClassification": {"head_layer": "none", "label_bias": True},
    "ForQuestionAnswering": {"head_layer": "none", "label_bias": True, "labels": 2},
}
_DECODER_HEADS: Mapping[str, Mapping[str, Any]] = {
    "ForCausalLM": {},
    "LMHeadModel": {},
    "ForConditionalGeneration": {},
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
        ``config.json`` of a family of ``FAMILIES`` in ``ddlopt.instances.readers.models.transformer_families``, or of
        another one that has the usual fields, which is then taken to be built as Llama is.
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
    told = config.told(sizes)
    workload = partial(named_workload, sizes, config.ending)
    return jobs.Network(
        sizes.name,
        told,
        workload,
        partial(transformer_graph, sizes),
        partial(transformer_step, sizes),
        config.precision or FP32,
    )


read_compression = jobs.reader(transformer_network, jobs.compression)
read_topology = jobs.reader(transformer_network, jobs.topology)
read_codesign = jobs.reader(transformer_network, jobs.codesign)
read_deployment = jobs.reader(transformer_network, jobs.deployment)


def read_transformer(path: str | Path, sequence: int | None = None) -> Transformer:
    """The sizes that a configuration tells; see :func:`transformer_network`."""
    return _config(path).sizes(sequence)


def read_sizes(
    path: str | Path | Mapping[str, Any], sequence: int | None = None
) -> tuple[Transformer, Precision | None, str]:
    """The same with the precision, if it is said, and what was read and assumed."""
    config = _config(path)
    sizes = config.sizes(sequence)
    return sizes, config.precision, config.told(sizes)


def _config(path: str | Path | Mapping[str, Any]) -> "_Config":
    if isinstance(path, Mapping):
        return _Config("configuration", path)
    try:
        data = parsed(read_text(path), finite=False)
    except UnreadableError as problem:
        raise InstanceError(f"{path}: cannot be read: {problem}") from None
    except ValueError as problem:
        raise InstanceError(f"{path}: not valid JSON: {problem}") from None
    if not isinstance(data, Mapping):
        raise InstanceError(f"{path}: it is no configuration of a transformer; expected an object with 'model_type'")
    inner = data.get("config")
    # A catalogue of models keeps the file of each as it is, beside where it is from.
    return _Config(path, inner if isinstance(inner, Mapping) and "model_type" not in data else data)


_READ = ", ".join((*FAMILIES, *PAIRS))
_MIXED = {
    "state space": with_state_space,
    "mamba": with_mamba,
    "delta rule": with_delta_rule,
    "lightning": with_lightning,
    "two kinds of heads": with_two_kinds_of_heads,
    "chosen tokens": with_chosen_tokens,
}
"""What makes blocks unlike, by ``Family.mixed``."""


class _Config(Fields):
    """A configuration's fields, each with the name that its family gives it."""

    def __init__(self, path: str | Path, data: Mapping[str, Any]) -> None:
        super().__init__(path, data, str(data.get("model_type")))
        self.towers = isinstance(data.get("text_config"), Mapping) and "vision_config" in data
        self.data = data = self._text(data)
        name = data.get("model_type")
        if not isinstance(name, str):
            raise InstanceError(f"{path}: model_type is {name!r}; what is read: {_READ}")
        self.name, self.heads = name, _ENCODER_HEADS if name in ENCODERS else _DECODER_HEADS
        if name in PAIRS:
            self.heads = PAIRS[name][1]
        else:
            self.family = FAMILIES.get(name) or self._unknown(name)
            self.names = self.family.names
        self.ending = self._ending()

    def told(self, sizes: Transformer) -> str:
        """What was read, and what was assumed."""
        told = f"layers as {Path(self.path).name} says ({sizes.name}), on {sizes.sequence} tokens"
        return told + "".join(f"; {each}" for each in self.assumed)

    def _text(self, data: Mapping[str, Any]) -> Mapping[str, Any]:
        """The text model's part of a configuration that has several."""
        inner = data.get("text_config")
        if not isinstance(inner, Mapping):
            return data
        others = [name for name in data if name.endswith("_config") and name != "text_config"]
        self.assumed.append(f"its text model alone, without what {', '.join(others) or 'else there is'} tells of")
        kept = ("architectures", "tie_word_embeddings", "torch_dtype", "dtype")
        usual = {"model_type": NESTED.get(str(data.get("model_type")), data.get("model_type"))}
        outer = {name: data[name] for name in kept if name in data}
        return {**usual, **outer, **inner, **{"architectures": data.get("architectures", inner.get("architectures"))}}

    def _unknown(self, name: str) -> Family:
        """What is not known by name is read by its fields, as one of Llama's kin, unless a field tells otherwise."""
        odd = [f"{field}, {part}" for field, part in OTHER_WISE.items() if self.data.get(field)]
        kinds = self.data.get("layer_types") or ()
        strange = [kind for kind in kinds if "linear" in str(kind) or "mamba" in str(kind) or "conv" in str(kind)]
        odd += [f"layer_types, {strange[0]}"] if strange else []
        needed = ("hidden_size", "num_hidden_layers", "num_attention_heads")
        missing = [field for field in needed if field not in self.data]
        named = self.data.get("architectures") or ["ForCausalLM"]
        model = str(named[0] if isinstance(named, list) else named)
        decoder = model.endswith(("ForCausalLM", "ForConditionalGeneration"))
        if odd or missing or not decoder:
            towers = "it has two towers, of text and of images" if self.towers else "it is no language model"
            why = f"it has {odd[0]}" if odd else f"{missing[0]} is missing" if missing and decoder else towers
            raise InstanceError(
                f"{self.path}: model_type is {name!r}, which cannot be read by its fields ({why}); what is read: "
                f"{_READ}"
            )
        experts_by = {"num_local_experts": "usual", "num_experts": "qwen", "n_routed_experts": "deepseek"}
        told = next((field for field in experts_by if field in self.data), None)
        experts = experts_by[told] if told else "none"
        self.assumed.append(f"'{name}' is not known and taken to be built as Llama is")
        usual = FAMILIES["llama"]
        return replace(usual, experts=experts, names={**usual.names, **({"experts": told} if told else {})})

    def sizes(self, sequence: int | None) -> Transformer:
        if self.name in PAIRS:
            make, _ = PAIRS[self.name]
            return make(self, sequence, self.head())
        family, names = self.family, self.names
        hidden, heads, layers = (self.number(names[each]) for each in ("hidden", "heads", "layers"))
        self.refuse_many("layers", names["layers"], layers)
        context = self.context()
        keys = self.keys(heads)
        if heads % keys:
            raise InstanceError(
                f"{self.path}: {names['keys']} is {keys}, which does not divide {names['heads']} {heads}"
            )
        latent = self.latent()
        if self.data.get("head_dim") is None and latent is None and hidden % heads:
            raise InstanceError(
                f"{self.path}: {names['heads']} is {heads}, which does not divide {names['hidden']} {hidden}"
            )
        options = {**family.options, **self.head(), **self.experts(layers)}
        if "attention_bias" in self.data:
            options.update(dict.fromkeys(family.attention_bias, self.flag("attention_bias", False)))
        for option, (name, otherwise) in family.flags.items():
            options[option] = self.flag(name, otherwise)
        if self.name == "falcon":
            options |= self.falcon()
        if family.mixed:
            options |= _MIXED[family.mixed](self, layers)
        rows = (context or 0) + family.positions if self.trains_positions and family.positions is not None else 0
        options.setdefault("width", self.width(hidden))
        return Transformer(
            name=self.name,
            layers=layers,
            hidden=hidden,
            heads=heads,
            vocabulary=self.number(names["vocabulary"]),
            sequence=self.sequence(sequence, context),
            key_value_heads=keys,
            head=latent.unturned + latent.turned if latent else self.number(names["head"], hidden // heads),
            positions=rows,
            segments=self.number("type_vocab_size") if self.name in ENCODERS else 0,
            latent=latent,
            **options,
        )

    def width(self, hidden: int) -> int:
        """Of a feed-forward layer; where all have experts it may be missing."""
        name = "intermediate_size_mlp" if self.family.experts == "llama4" else self.names["width"]
        usual = self.family.multiple * hidden or None
        if self.family.experts != "none" and name not in self.data:
            usual = self.number(self.names["expert_width"])
        return self.number(name, usual)

    def keys(self, heads: int) -> int:
        """Heads of keys and values."""
        if self.name == "gpt_bigcode" and self.flag("multi_query", True):
            return 1
        if self.trains_positions:
            return heads
        if self.name == "falcon":
            if self.flag("new_decoder_architecture", False):
                return self.number("num_kv_heads", heads)
            return 1 if self.flag("multi_query", True) else heads
        return self.number(self.names["keys"], heads)

    def falcon(self) -> dict[str, Any]:
        """Biases and normalisations of Falcon."""
        bias = self.flag("bias", False)
        new = self.flag("new_decoder_architecture", False)
        norms = self.number("num_ln_in_parallel_attn", 2) if new else 1
        parallel = norms if self.flag("parallel_attn", True) else 0
        return {"qkv_bias": bias, "output_bias": bias, "feed_bias": bias, "parallel": parallel}

    def latent(self) -> Latent | None:
        """Sizes of latent attention."""
        if self.family.experts != "deepseek" or self.data.get("kv_lora_rank") is None:
            return None
        return Latent(
            self.number("q_lora_rank") if self.data.get("q_lora_rank") else 0,
            self.number("kv_lora_rank"),
            self.number("qk_nope_head_dim"),
            self.number("qk_rope_head_dim"),
            self.number("v_head_dim"),
        )

    def experts(self, layers: int) -> dict[str, Any]:
        """How many experts there are, how wide, and in which blocks."""
        kind, names = self.family.experts, self.names
        if kind == "none" or (kind == "deepseek" and self.data.get(names["experts"]) is None):
            return {}
        experts, chosen = self.number(names["experts"]), self.number(names["chosen"])
        self.refuse_many("experts", names["experts"], experts)
        if chosen > experts:
            raise InstanceError(f"{self.path}: {names['chosen']} is {chosen}, but there are {experts} experts")
        found: dict[str, Any] = {"experts": experts, "chosen": chosen}
        if kind == "usual":
            return found
        if kind == "llama4":
            step, width = self.number("interleave_moe_layer_step", 1), self.number(names["width"])
            plain = frozenset(place for place in range(layers) if (place + 1) % step)
            return found | {"expert_width": width, "shared_width": width, "plain": plain}
        width = self.number(names["expert_width"])
        if kind == "qwen":
            listed = self.data.get("mlp_only_layers") or ()
            step = self.number("decoder_sparse_step", 1)
            plain = frozenset(place for place in range(layers) if place in listed or (place + 1) % step)
            shared = self.data.get("shared_expert_intermediate_size")
            shared = self.number("shared_expert_intermediate_size") if shared is not None else 0
            return found | {"expert_width": width, "shared_width": shared, "plain": plain}
        first, step = self.data.get("first_k_dense_replace") or 0, self.number("moe_layer_freq", 1)
        if not isinstance(first, int) or not 0 <= first <= layers:
            raise InstanceError(f"{self.path}: first_k_dense_replace is {first!r}; use 0..{layers}, the layers")
        plain = frozenset(place for place in range(layers) if place < first or place % step)
        shared = self.number("n_shared_experts") * width if self.data.get("n_shared_experts") else 0
        return found | {"expert_width": width, "shared_width": shared, "plain": plain}

    def _ending(self) -> str:
        """What the name of the model's class ends with, by ``architectures``; where these are not given, the usual."""
        usual = {id(_DECODER_HEADS): "ForCausalLM", id(_ENCODER_HEADS): "Model"}
        named = self.data.get("architectures") or [usual.get(id(self.heads), next(iter(self.heads)))]
        name = named[0] if isinstance(named, list) else named
        ending = next((each for each in self.heads if isinstance(name, str) and name.endswith(each)), None)
        if ending is None:
            raise InstanceError(
                f"{self.path}: architectures[0] is {name!r}; what is read ends with {', '.join(self.heads)}"
            )
        return ending

    @property
    def precision(self) -> Precision | None:
        """What weights are said to be in; None if nothing is said."""
        kind = self.data.get("torch_dtype") or self.data.get("dtype")
        if kind is None:
            return None
        return FP32 if str(kind).removeprefix("torch.") == "float32" else BF16

    @property
    def trains_positions(self) -> bool:
        return self.family.positions is not None

    def head(self) -> dict[str, Any]:
        """What stands at the end, by ``architectures``; that of the family where these are not given."""
        head = dict(self.heads[self.ending])
        if "label_bias" in head and "labels" not in head:
            classes = self.data.get("id2label")
            head["labels"] = self.number("num_labels", len(classes) if isinstance(classes, Mapping) and classes else 2)
        last = head.get("head_layer") or self.family.options.get("head_layer", "words")
        if last in ("words", "tied"):
            head["head_layer"] = "tied" if self.flag("tie_word_embeddings", last == "tied") else "words"
        elif last == "masked" and not self.flag("tie_word_embeddings", True):
            raise InstanceError(
                f"{self.path}: tie_word_embeddings is false; {self.name}…{self.ending} is read where it is true"
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
            context = LARGEST
        return length(self, asked, context)
