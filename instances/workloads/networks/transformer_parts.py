"""What blocks of transformers may have besides plain attention and a feed-forward layer."""

import math
from dataclasses import dataclass
from typing import Literal

from ddlopt.instances.workloads.networks.layers import Layer, ParameterTensors, dense

Part = Literal["attention", "cross", "mixer", "feed"]
"""What a block may consist of; *cross* is attention to what an encoder gives."""


@dataclass(frozen=True)
class Latent:
    """Attention whose queries, and keys and values, are made from short vectors (DeepSeek-V2, arXiv:2405.04434).

    Parameters
    ----------
    queries, keys : int
        Numbers of a token's vector for queries, and of that for keys and values; 0 where queries are made directly.
    unturned, turned : int
        Numbers of a head's queries and keys without and with rotary positions; the latter of keys are all heads' own.
    values : int
        Numbers of a head's values.
    """

    queries: int
    keys: int
    unturned: int
    turned: int
    values: int


@dataclass(frozen=True)
class Heads:
    """Heads of attention in some blocks, where others have other ones (Gemma 4).

    Parameters
    ----------
    head, keys : int
        Numbers of a head, and heads of keys and values.
    values : bool
        Whether values have a projection of their own; the keys are the values otherwise.
    """

    head: int
    keys: int
    values: bool = True


@dataclass(frozen=True)
class Indexer:
    """What chooses the tokens that a query sees (sparse attention of DeepSeek-V3.2).

    A second attention with one head of keys scores all pairs; a query sees the ``chosen`` best.

    Parameters
    ----------
    heads, head, chosen : int
    """

    heads: int
    head: int
    chosen: int


@dataclass(frozen=True)
class Mixer:
    """What mixes tokens by a state that goes from one to the next, in place of attention.

    Operations are those of the recurrence; programs that work in chunks of tokens do more, as products of matrices.

    Parameters
    ----------
    inputs : tuple of (str, int)
        Dense layers that read a token: names and numbers.
    values : int
        Numbers of a token that the last dense layer reads.
    trained : tuple of (str, tuple of int)
        Tensors besides dense layers' weights: of a convolution along the tokens, of the recurrence, of normalisation.
    operations : int
        Of a token, besides those of dense layers.
    cuts : int
        Equal parts that do not read each other.
    bias : bool
        Of dense layers.
    """

    inputs: tuple[tuple[str, int], ...]
    values: int
    trained: ParameterTensors
    operations: int
    cuts: int
    bias: bool = False

    def into(self, name: str, hidden: int, rows: int) -> tuple[Layer, ...]:
        """The dense layers that read tokens."""
        return tuple(dense(f"{name}.{part}", hidden, width, self.bias, rows) for part, width in self.inputs)

    def scan(self, name: str, rows: int) -> Layer:
        """From the first dense layers to the last one."""
        parameters = sum(math.prod(shape) for _, shape in self.trained)
        read = sum(width for _, width in self.inputs)
        return Layer(
            f"{name}.scan",
            parameters,
            flops=rows * self.operations,
            inputs=rows * read,
            outputs=rows * self.values,
            tensors=self.trained,
        )

    def out(self, name: str, hidden: int, rows: int) -> Layer:
        """The last dense layer."""
        return dense(f"{name}.output", self.values, hidden, self.bias, rows)


def state_space(
    heads: int, head: int, groups: int, state: int, kernel: int, bias: bool = False, convolution_bias: bool = True
) -> Mixer:
    """Mamba-2 (T. Dao, A. Gu, arXiv:2405.21060): a matrix of head × state for each head, decayed by a number.

    Of a token and number of the state: one operation decays, two add, two read.
    """
    inner = heads * head
    convolved = inner + 2 * groups * state
    trained = (
        *((("convolution.bias", (convolved,)),) if convolution_bias else ()),
        ("convolution.weight", (convolved, 1, kernel)),
        ("time_step", (heads,)),
        ("decay", (heads,)),
        ("skip", (heads,)),
        ("scale", (inner,)),
    )
    operations = 2 * kernel * convolved + 5 * inner * state + 8 * inner
    return Mixer((("projections", inner + convolved + heads),), inner, trained, operations, groups, bias)


def selective_scan(
    inner: int, state: int, rank: int, kernel: int, bias: bool = False, convolution_bias: bool = True
) -> Mixer:
    """Mamba (A. Gu, T. Dao, arXiv:2312.00752): a state for each channel, steps and both its maps from the token."""
    trained = (
        *((("convolution.bias", (inner,)),) if convolution_bias else ()),
        ("convolution.weight", (inner, 1, kernel)),
        ("maps", (rank + 2 * state, inner)),
        ("time_step.bias", (inner,)),
        ("time_step.weight", (inner, rank)),
        ("decay", (inner, state)),
        ("skip", (inner,)),
    )
    maps = 2 * inner * (rank + 2 * state) + 2 * inner * rank
    operations = 2 * kernel * inner + maps + 5 * inner * state
    return Mixer((("projections", 2 * inner),), inner, trained, operations, 1, bias)


def delta_rule(key_heads: int, value_heads: int, key_head: int, value_head: int, kernel: int) -> Mixer:
    """Gated DeltaNet (S. Yang et al., arXiv:2412.06464): a matrix for each head, in which a key's value is replaced.

    Of a token and number of the state: one operation decays, two read the old value, two add, two read.
    """
    keys, values = key_heads * key_head, value_heads * value_head
    convolved = 2 * keys + values
    inputs = (("projections", convolved), ("gate", values), ("strength", value_heads), ("decay", value_heads))
    trained = (
        ("convolution.weight", (convolved, 1, kernel)),
        ("time_step", (value_heads,)),
        ("decay", (value_heads,)),
        ("scale", (value_head,)),
    )
    operations = 2 * kernel * convolved + 7 * values * key_head + 8 * values
    return Mixer(inputs, values, trained, operations, key_heads)


def lightning(heads: int, head: int) -> Mixer:
    """Lightning attention (MiniMax-01, arXiv:2501.08313): decayed sums of products of keys and values, gated."""
    values = heads * head
    inputs = (("projections", 3 * values), ("gate", values))
    return Mixer(inputs, values, (("scale", (values,)),), 5 * values * head + 8 * values, heads)
