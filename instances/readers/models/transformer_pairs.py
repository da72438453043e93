"""Transformers that are not one stack over words: an encoder and a decoder, sound or an image in place of words."""

from collections.abc import Callable, Mapping
from typing import Any

from ddlopt.instances.readers.models.config_fields import LARGEST, Fields
from ddlopt.instances.readers.models.transformer_mixed import mamba_mixer
from ddlopt.instances.workloads.networks.layers import Layer
from ddlopt.instances.workloads.networks.transformers import Transformer
from ddlopt.models.errors import InstanceError, OptionError

_LONGEST = 2048
"""Tokens of a sample unless told otherwise, where the context is longer."""
_PLAIN = {"qkv_bias": False, "output_bias": False, "feed_bias": False, "norm_shift": False}


def length(fields: Fields, asked: int | None, context: int, otherwise: int | None = None) -> int:
    """Tokens of a sample: as many as asked for, or as there may be."""
    if asked is None:
        return min(context, _LONGEST) if otherwise is None else otherwise
    if not 1 <= asked <= context:
        raise OptionError(f"sequence is {asked}; {fields.path} has a context of {context}, so use 1..{context}")
    return asked


def t5(fields: Fields, sequence: int | None, head: Mapping[str, Any]) -> Transformer:
    """T5 (C. Raffel et al., arXiv:1910.10683): scores by distance in the first blocks; samples of 512 tokens.

    Where ``feed_forward_proj`` begins with *gated* (T5 1.1, mT5), feed-forward layers are gated.
    """
    hidden, heads, layers = (fields.number(name) for name in ("d_model", "num_heads", "num_layers"))
    projection = fields.data.get("feed_forward_proj", "gated-gelu" if fields.name == "mt5" else "relu")
    if not isinstance(projection, str):
        raise InstanceError(f"{fields.path}: feed_forward_proj is {projection!r}; it must be a word")
    # Positions are distances, so that samples may have any length.
    tokens = length(fields, sequence, LARGEST, 512)
    common: dict[str, Any] = {
        **_PLAIN,
        "hidden": hidden,
        "heads": heads,
        "vocabulary": fields.number("vocab_size"),
        "width": fields.number("d_ff"),
        "sequence": tokens,
        "key_value_heads": heads,
        "head": fields.number("d_kv"),
        "gated": projection.startswith("gated"),
        "score_rows": fields.number("relative_attention_num_buckets", 32),
    }
    return _pair(fields, common, head, layers, fields.number("num_decoder_layers", layers))


def bart(fields: Fields, sequence: int | None, head: Mapping[str, Any]) -> Transformer:
    """BART (M. Lewis et al., arXiv:1910.13461); mBART and Pegasus normalise first, and Pegasus has fixed positions."""
    context = fields.number("max_position_embeddings", 1024)
    first, fixed = fields.name in ("mbart", "pegasus"), fields.name == "pegasus"
    common: dict[str, Any] = {
        "hidden": fields.number("d_model"),
        "vocabulary": fields.number("vocab_size"),
        "sequence": length(fields, sequence, context),
        "positions": context + (0 if fixed else 2),
        "norm_first": first,
        "embedding_norm": not fixed,
    }
    if fixed:
        fields.assumed.append("fixed positions are counted as trained ones")
    return _two_sided(fields, common, common, head)


def whisper(fields: Fields, sequence: int | None, head: Mapping[str, Any]) -> Transformer:
    """Whisper (A. Radford et al., arXiv:2212.04356): two convolutions over sound, keys without biases.

    A sample is as much sound as the encoder takes, and ``sequence`` words.
    """
    hidden, sounds = fields.number("d_model"), fields.number("max_source_positions", 1500)
    context = fields.number("max_target_positions", 448)
    bins = fields.number("num_mel_bins", 80)
    stem = (
        _convolution("encoder.embedding.convolution.0", bins, hidden, 3, 2 * sounds, 2 * sounds),
        _convolution("encoder.embedding.convolution.1", hidden, hidden, 3, 2 * sounds, sounds),
    )
    common = {"hidden": hidden, "key_bias": False}
    encoder = {"vocabulary": 0, "sequence": sounds, "positions": sounds, "stem": stem}
    words = {"vocabulary": fields.number("vocab_size"), "sequence": length(fields, sequence, context)}
    fields.assumed.append("the fixed positions of the encoder are counted as trained ones")
    return _two_sided(fields, common | encoder, common | words | {"positions": context}, head)


def _two_sided(
    fields: Fields, encoder: Mapping[str, Any], decoder: Mapping[str, Any], head: Mapping[str, Any]
) -> Transformer:
    """An encoder and a decoder whose sizes have names of their own."""

    def side(which: str, common: Mapping[str, Any]) -> dict[str, Any]:
        heads, hidden = fields.number(f"{which}_attention_heads"), common["hidden"]
        if hidden % heads:
            raise InstanceError(
                f"{fields.path}: {which}_attention_heads is {heads}, which does not divide d_model {hidden}"
            )
        sizes = {"heads": heads, "key_value_heads": heads, "head": hidden // heads}
        return {**common, **sizes, "width": fields.number(f"{which}_ffn_dim")}

    layers = {which: fields.number(f"{which}_layers") for which in ("encoder", "decoder")}
    one = _stack(fields, layers["encoder"], "encoder_layers", side("encoder", encoder), prefix="encoder.")
    return _stack(fields, layers["decoder"], "decoder_layers", {**side("decoder", decoder), **head}, encoder=one)


def _pair(
    fields: Fields, common: Mapping[str, Any], head: Mapping[str, Any], encoding: int, decoding: int
) -> Transformer:
    """An encoder and a decoder of the same sizes."""
    encoder = _stack(fields, encoding, "num_layers", common, prefix="encoder.")
    return _stack(fields, decoding, "num_decoder_layers", {**common, **head}, encoder=encoder)


def _stack(fields: Fields, layers: int, told_by: str, sizes: Mapping[str, Any], **more: Any) -> Transformer:
    fields.refuse_many("layers", told_by, layers)
    last = {"head_layer": "none"} if "prefix" in more else {}
    return Transformer(**{"name": fields.name, "layers": layers, **sizes, **last, **more})


def vit(fields: Fields, sequence: int | None, head: Mapping[str, Any]) -> Transformer:
    """ViT (A. Dosovitskiy et al., arXiv:2010.11929): square patches of an image, and one vector for the class."""
    hidden, heads = fields.number("hidden_size"), fields.number("num_attention_heads")
    image, patch = fields.number("image_size", 224), fields.number("patch_size", 16)
    if image % patch or hidden % heads:
        broken = ("patch_size", patch, "image_size", image) if image % patch else ("num_attention_heads", heads)
        name, value, whole, size = (*broken, "hidden_size", hidden)[:4]
        raise InstanceError(f"{fields.path}: {name} is {value}, which does not divide {whole} {size}")
    tokens = (image // patch) ** 2 + 1
    if sequence not in (None, tokens):
        raise OptionError(f"sequence is {sequence}; an image has {tokens} tokens, so leave it out")
    channels, layers = fields.number("num_channels", 3), fields.number("num_hidden_layers")
    flat = channels * patch * patch
    patches = Layer(
        "embedding.patches",
        flat * hidden + hidden,
        flops=2 * flat * hidden * (tokens - 1),
        inputs=channels * image * image,
        outputs=hidden * (tokens - 1),
        convolution=True,
        tensors=(("bias", (hidden,)), ("weight", (hidden, channels, patch, patch))),
    )
    sizes: dict[str, Any] = {
        "hidden": hidden,
        "heads": heads,
        "key_value_heads": heads,
        "head": hidden // heads,
        "width": fields.number("intermediate_size"),
        "vocabulary": 0,
        "sequence": tokens,
        "positions": tokens,
        "first_tokens": 1,
        "stem": (patches,),
        "qkv_bias": fields.flag("qkv_bias", True),
    }
    return _stack(fields, layers, "num_hidden_layers", {**sizes, **head})


def mamba(fields: Fields, sequence: int | None, head: Mapping[str, Any]) -> Transformer:
    """Mamba, Mamba-2 and Falcon Mamba: blocks of one mixer each; samples may have any length, usually 2048."""
    hidden, layers = fields.number("hidden_size"), fields.number("num_hidden_layers")
    sizes: dict[str, Any] = {
        "hidden": hidden,
        "heads": 1,
        "key_value_heads": 1,
        "head": hidden,
        "width": hidden,
        "vocabulary": fields.number("vocab_size"),
        "sequence": length(fields, sequence, LARGEST, _LONGEST),
        "norm_shift": False,
        "pattern": (("mixer",),) * layers,
        "mixer": mamba_mixer(fields, hidden),
    }
    return _stack(fields, layers, "num_hidden_layers", {**sizes, **head})


def _convolution(name: str, inputs: int, outputs: int, kernel: int, read: int, written: int) -> Layer:
    """A convolution along the time."""
    return Layer(
        name,
        kernel * inputs * outputs + outputs,
        flops=2 * kernel * inputs * outputs * written,
        inputs=inputs * read,
        outputs=outputs * written,
        convolution=True,
        tensors=(("bias", (outputs,)), ("weight", (outputs, inputs, kernel))),
    )


Making = Callable[[Fields, int | None, Mapping[str, Any]], Transformer]
_WORDS: Mapping[str, Mapping[str, Any]] = {
    "ForConditionalGeneration": {"head_layer": "tied"},
    "Model": {"head_layer": "none"},
}
_IMAGES: Mapping[str, Mapping[str, Any]] = {
    "ForImageClassification": {"head_layer": "first", "label_bias": True},
    "Model": {"head_layer": "pooler"},
}
PAIRS: Mapping[str, tuple[Making, Mapping[str, Mapping[str, Any]]]] = {
    "t5": (t5, _WORDS),
    "mt5": (t5, {**_WORDS, "ForConditionalGeneration": {"head_layer": "words"}}),
    "bart": (bart, _WORDS),
    "mbart": (bart, _WORDS),
    "pegasus": (bart, _WORDS),
    "whisper": (whisper, _WORDS),
    "vit": (vit, _IMAGES),
    "mamba": (mamba, {"ForCausalLM": {"head_layer": "tied"}, "Model": {"head_layer": "none"}}),
    "falcon_mamba": (mamba, {"ForCausalLM": {"head_layer": "tied"}, "Model": {"head_layer": "none"}}),
    "mamba2": (mamba, {"ForCausalLM": {"head_layer": "words"}, "Model": {"head_layer": "none"}}),
}
"""By ``model_type``: what makes the sizes, and what stands at the end by the name of the class."""
