"""The sizes of a transformer: what its layers follow from."""

from dataclasses import dataclass
from typing import Literal

from ddlopt.instances.workloads.networks.layers import Layer
from ddlopt.instances.workloads.networks.transformer_parts import Heads, Indexer, Latent, Mixer, Part


@dataclass(frozen=True)
class Sizes:
    """The sizes of a transformer.

    Parameters
    ----------
    name : str
    layers, hidden, heads : int
    vocabulary : int
        Rows of the table of words; 0 where ``stem`` makes the first vectors.
    width : int
        Of the feed-forward layer.
    sequence : int
        Tokens of a sample.
    key_value_heads : int
    head : int
        Numbers of a head.
    positions, segments : int
        Rows of these tables; 0 where positions are not trained, and where there are no segments.
    gated : bool
        Whether the feed-forward layer multiplies two projections (SwiGLU and its kin).
    norm_first : bool
        Whether normalisation comes before attention and feed-forward layer, and once more at the end, or after each.
    norm_shift : bool
        Whether normalisation has a shift (layer normalisation) or only a scale (root mean square).
    fused : bool
        Whether query, key and value are one projection.
    qkv_bias, output_bias, feed_bias : bool
        Of query, key and value, of the projection behind the heads, and of the feed-forward layer.
    head_layer : {"words", "tied", "masked", "pooler", "first", "none"}
        What comes at the end: a layer over all words, with its own weights or with the table's; the latter with a bias,
        behind a dense layer and a normalisation (BERT's for masked words); a dense layer on the first position; that
        position as it is.
    labels : int
        Classes that a layer behind that one tells apart; 0 where there is no such layer.
    label_bias : bool
        Of that layer.
    experts, chosen : int
        0 where there are none.
    expert_width, shared_width : int
        Of an expert, if it is not ``width``, and of the feed-forward layer that all tokens visit besides; 0 where there
        is none.
    shared_gate, router_bias : bool
        Whether that layer is weighed by a product of its own, and whether the router has a bias.
    plain : frozenset of int
        Blocks without experts.
    latent : Latent, optional
    head_norms : bool
        Whether the queries and keys of a head are normalised.
    joint_norms : bool
        Whether the queries of all heads are normalised together, and their keys.
    sinks : bool
        Whether every head has a trained score besides those of the tokens.
    norms_behind : bool
        Whether attention and feed-forward layer are normalised once more before they are added.
    parallel : int
        How many normalisations there are before attention and feed-forward layer where both read the same; 0 where the
        latter reads the former's sum.
    embedding_norm, words_bias : bool
        Whether the table's rows are normalised, and whether the last layer has a bias.
    pattern : tuple of tuple of str
        Parts of every block, where they are not attention and a feed-forward layer.
    mixer : Mixer, optional
        What blocks have that mix tokens without attention.
    full : frozenset of int
        Blocks whose heads are ``full_heads``.
    full_heads : Heads, optional
    indexer : Indexer, optional
        What chooses the tokens that queries see.
    output_gate : bool
        Whether what the heads give is multiplied by a second part of the query's layer.
    key_bias : bool
        Whether keys have a bias where queries have.
    latent_experts : int
        Numbers of a token inside of experts, if they are fewer than ``hidden``.
    score_rows : int
        Rows of a table of scores by distance, a number for each head, which the first block has (T5).
    stem : tuple of Layer
        Convolutions that make the first vectors.
    first_tokens : int
        Trained vectors before all others.
    prefix : str
        What all names begin with.
    """

    name: str
    layers: int
    hidden: int
    heads: int
    vocabulary: int
    width: int
    sequence: int
    key_value_heads: int
    head: int
    positions: int = 0
    segments: int = 0
    gated: bool = False
    norm_first: bool = True
    norm_shift: bool = True
    fused: bool = False
    qkv_bias: bool = True
    output_bias: bool = True
    feed_bias: bool = True
    head_layer: Literal["words", "tied", "masked", "pooler", "first", "none"] = "words"
    labels: int = 0
    label_bias: bool = True
    experts: int = 0
    chosen: int = 0
    expert_width: int = 0
    shared_width: int = 0
    shared_gate: bool = False
    router_bias: bool = False
    plain: frozenset[int] = frozenset()
    latent: Latent | None = None
    head_norms: bool = False
    joint_norms: bool = False
    sinks: bool = False
    norms_behind: bool = False
    parallel: int = 0
    embedding_norm: bool = False
    words_bias: bool = False
    pattern: tuple[tuple[Part, ...], ...] = ()
    mixer: Mixer | None = None
    full: frozenset[int] = frozenset()
    full_heads: Heads | None = None
    indexer: Indexer | None = None
    output_gate: bool = False
    key_bias: bool = True
    latent_experts: int = 0
    score_rows: int = 0
    stem: tuple[Layer, ...] = ()
    first_tokens: int = 0
    prefix: str = ""
