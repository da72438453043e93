"""Networks that papers on distributed training measure, layer by layer.

Sizes of the networks of TopoOpt that no architecture's own paper fixes are those of its simulations (scripts
of hipersys-team/TopoOpt, and the programs of hipersys-team/FlexFlow that the scripts run).
"""

import dataclasses
from collections.abc import Sequence

from ddlopt.instances.workloads.networks.layers import (
    EmbeddingTable,
    Layer,
    attention,
    attention_products,
    convolution,
    dense,
    mlp,
    normalisation,
    pooling,
    window_positions,
    word_embedding,
)
from ddlopt.instances.workloads.training import Workload


def dlrm(
    tables: int, rows: int, dimension: int, bag: int, bottom: list[int], top: list[int], batch_per_gpu: int
) -> Workload:
    """Deep learning recommendation model (Naumov et al. 2019, arXiv:1906.00091) with concatenated features.

    ``bottom`` starts with the number of dense features; ``top`` lists outputs, its input being everything concatenated.
    """
    concatenated = tables * dimension + bottom[-1]
    return Workload(
        "dlrm",
        tuple(mlp("bottom", bottom) + mlp("top", [concatenated, *top])),
        batch_per_gpu,
        tuple(EmbeddingTable(f"table.{k}", rows, dimension, bag) for k in range(tables)),
    )


def ncf(
    tables: int, rows: int, factors: int, dimension: int, bag: int, hidden: list[int], batch_per_gpu: int
) -> Workload:
    """Neural collaborative filtering (He et al. 2017, arXiv:1708.05031), NeuMF.

    ``tables`` tables of users and as many of items for the matrix factorisation (``factors`` wide, multiplied number
    by number), and as many again for the MLP (``dimension`` wide, concatenated); one dense layer joins the two.
    """
    widths = {"user.factor": factors, "item.factor": factors, "user.mlp": dimension, "item.mlp": dimension}
    product = Layer("product", 0, tables * factors, 2 * tables * factors, tables * factors)
    predict = dense("predict", tables * factors + hidden[-1], 1)
    return Workload(
        "ncf",
        (product, *mlp("mlp", [2 * tables * dimension, *hidden]), predict),
        batch_per_gpu,
        tuple(EmbeddingTable(f"{kind}.{k}", rows, width, bag) for kind, width in widths.items() for k in range(tables)),
    )


def candle(feature_layers: list[int], dense_layers: list[int], batch_per_gpu: int, shared: bool = True) -> Workload:
    """CANDLE Uno (ECP-CANDLE benchmarks, Pilot1/Uno): a tower per kind of feature, then dense layers on all of them.

    A drug response from one cell line and two drugs with their doses: the towers of drug descriptors and of
    fingerprints serve both drugs. ``shared=False`` gives each input a tower of its own, as FlexNet does.
    """
    features = {"cell.rnaseq": 942, "drug.descriptors": 5270, "drug.fingerprints": 2048}
    doses = 2
    layers: list[Layer] = []
    concatenated = doses
    for kind, width in features.items():
        drugs = 2 if kind.startswith("drug") else 1
        tower = mlp(kind, [width, *feature_layers])
        if shared:
            layers += [_applied(layer, drugs) for layer in tower]
        else:
            layers += tower * drugs
        concatenated += drugs * feature_layers[-1]
    return Workload("candle", tuple(layers + mlp("dense", [concatenated, *dense_layers])), batch_per_gpu)


def _applied(layer: Layer, times: int) -> Layer:
    """The same weights used several times by each sample."""
    return dataclasses.replace(
        layer, flops=times * layer.flops, inputs=times * layer.inputs, outputs=times * layer.outputs
    )


def bert(
    layers: int, hidden: int, sequence: int, batch_per_gpu: int, vocabulary: int = 30522, positions: int = 512
) -> Workload:
    """BERT (Devlin et al. 2019, arXiv:1810.04805): embeddings, ``layers`` encoder blocks of 12h²+13h, a pooler."""
    stack = [
        word_embedding("embedding.words", vocabulary, hidden, sequence),
        word_embedding("embedding.positions", positions, hidden, sequence),
        word_embedding("embedding.segments", 2, hidden, sequence),
        normalisation("embedding.norm", hidden, sequence),
    ]
    for place in range(layers):
        stack += encoder_block(f"block.{place}", hidden, sequence)
    stack.append(dense("pooler", hidden, hidden))
    return Workload("bert", tuple(stack), batch_per_gpu)


def encoder_block(name: str, hidden: int, sequence: int) -> list[Layer]:
    """Attention (4h²+4h), a feed-forward layer four times as wide (8h²+5h), and two normalisations (2h each)."""
    return [
        *attention(f"{name}.attention", hidden, sequence),
        normalisation(f"{name}.norm.0", hidden, sequence),
        *_feed_forward(name, hidden, sequence),
        normalisation(f"{name}.norm.1", hidden, sequence),
    ]


def _feed_forward(name: str, hidden: int, sequence: int) -> list[Layer]:
    return [
        dense(f"{name}.feed.0", hidden, 4 * hidden, rows=sequence),
        dense(f"{name}.feed.1", 4 * hidden, hidden, rows=sequence),
    ]


def gpt2(
    batch_per_gpu: int, layers: int = 12, hidden: int = 768, context: int = 1024, vocabulary: int = 50257
) -> Workload:
    """GPT-2 (Radford et al. 2019, "Language models are unsupervised multitask learners"), by default the smallest.

    Normalisations come before attention and feed-forward layers, and once more at the end; query, key and value are one
    projection; the output layer uses the table of words. Trained on whole contexts.
    """
    stack = [
        word_embedding("embedding.words", vocabulary, hidden, context),
        word_embedding("embedding.positions", context, hidden, context),
    ]
    for place in range(layers):
        name = f"block.{place}"
        stack += [
            normalisation(f"{name}.norm.0", hidden, context),
            dense(f"{name}.attention.projections", hidden, 3 * hidden, rows=context),
            attention_products(f"{name}.attention.products", hidden, context),
            dense(f"{name}.attention.output", hidden, hidden, rows=context),
            normalisation(f"{name}.norm.1", hidden, context),
            *_feed_forward(name, hidden, context),
        ]
    stack += [
        normalisation("norm", hidden, context),
        _tied(dense("words", hidden, vocabulary, bias=False, rows=context)),
    ]
    return Workload("gpt2", tuple(stack), batch_per_gpu)


def transformer(
    batch_per_gpu: int, layers: int = 6, hidden: int = 512, sequence: int = 32, vocabulary: int = 37000
) -> Workload:
    """Transformer (Vaswani et al. 2017, arXiv:1706.03762), by default the base model for English and German.

    Source, target and output layer share one table of words; positions are not trained. The length of sentences is ours
    (the paper forms batches by tokens); projections have biases, as in most implementations.
    """
    stack = [
        word_embedding("embedding.source", vocabulary, hidden, sequence),
        _tied(word_embedding("embedding.target", vocabulary, hidden, sequence)),
    ]
    for place in range(layers):
        stack += encoder_block(f"encoder.{place}", hidden, sequence)
    for place in range(layers):
        name = f"decoder.{place}"
        stack += [
            *attention(f"{name}.attention", hidden, sequence),
            normalisation(f"{name}.norm.0", hidden, sequence),
            *attention(f"{name}.memory", hidden, sequence),
            normalisation(f"{name}.norm.1", hidden, sequence),
            *_feed_forward(name, hidden, sequence),
            normalisation(f"{name}.norm.2", hidden, sequence),
        ]
    stack.append(_tied(dense("words", hidden, vocabulary, bias=False, rows=sequence)))
    return Workload("transformer", tuple(stack), batch_per_gpu)


def _tied(layer: Layer) -> Layer:
    """The layer with another one's parameters, which are counted there."""
    return dataclasses.replace(layer, parameters=0, tensors=())


def vgg16(batch_per_gpu: int, image: int = 224, padding: int = 1, pool: int = 2, classes: int = 1000) -> Workload:
    """VGG, configuration D (Simonyan and Zisserman 2015, arXiv:1409.1556).

    FlexNet's program differs from the paper: ``image=229, padding=2, pool=3`` makes the first dense layer see 11 × 11
    instead of 7 × 7 pixels, and the network twice as large.
    """
    return _vgg("vgg16", (2, 2, 3, 3, 3), batch_per_gpu, image, padding, pool, classes)


def vgg19(batch_per_gpu: int, image: int = 224, classes: int = 1000) -> Workload:
    """VGG, configuration E of the same paper: one more convolution in each of the last three stages."""
    return _vgg("vgg19", (2, 2, 4, 4, 4), batch_per_gpu, image, 1, 2, classes)


def _vgg(
    name: str, depths: Sequence[int], batch_per_gpu: int, image: int, padding: int, pool: int, classes: int
) -> Workload:
    """``depths`` convolutions a stage, of 64, 128, 256, 512 and 512 channels, then three dense layers."""
    stack: list[Layer] = []
    size, channels = image, 3
    for stage, (width, depth) in enumerate(zip((64, 128, 256, 512, 512), depths, strict=True)):
        for place in range(depth):
            stack.append(convolution(f"conv.{stage}.{place}", size, (channels, width), 3, padding=padding))
            size, channels = window_positions(size, 3, 1, padding), width
        stack.append(pooling(f"pool.{stage}", channels, size, pool, 2))
        size = window_positions(size, pool, 2, 0)
    stack += mlp("dense", [channels * size * size, 4096, 4096, classes])
    return Workload(name, tuple(stack), batch_per_gpu)


def resnet50(batch_per_gpu: int, image: int = 224, classes: int = 1000) -> Workload:
    """ResNet-50 (He et al. 2016, arXiv:1512.03385), the stride in the 3 × 3 convolution ("v1.5")."""
    return _resnet("resnet50", (3, 4, 6, 3), batch_per_gpu, image, classes)


def resnet101(batch_per_gpu: int, image: int = 224, classes: int = 1000) -> Workload:
    """ResNet-101 of the same paper: 23 blocks in the third stage."""
    return _resnet("resnet101", (3, 4, 23, 3), batch_per_gpu, image, classes)


def _resnet(name: str, depths: Sequence[int], batch_per_gpu: int, image: int, classes: int) -> Workload:
    """``depths`` bottleneck blocks a stage."""
    stack = _normalised("stem", image, (3, 64), 7, 2, 3)
    size = window_positions(image, 7, 2, 3)
    stack.append(pooling("stem.pool", 64, size, 3, 2, 1))
    size, channels = window_positions(size, 3, 2, 1), 64
    for stage, (width, depth) in enumerate(zip((64, 128, 256, 512), depths, strict=True)):
        for place in range(depth):
            stride = 2 if stage > 0 and place == 0 else 1
            stack += _bottleneck(f"stage.{stage}.{place}", size, channels, width, stride)
            size, channels = window_positions(size, 3, stride, 1), 4 * width
    stack += [pooling("pool", channels, size, size, 1), dense("classes", channels, classes)]
    return Workload(name, tuple(stack), batch_per_gpu)


def _bottleneck(name: str, size: int, channels: int, width: int, stride: int) -> list[Layer]:
    """1 × 1 down to ``width``, 3 × 3, 1 × 1 up to four times that; a projection where the shortcut changes shape."""
    small = window_positions(size, 3, stride, 1)
    block = _normalised(f"{name}.0", size, (channels, width), 1)
    block += _normalised(f"{name}.1", size, (width, width), 3, stride, 1)
    block += _normalised(f"{name}.2", small, (width, 4 * width), 1)
    if stride != 1 or channels != 4 * width:
        block += _normalised(f"{name}.shortcut", size, (channels, 4 * width), 1, stride)
    return block


def _normalised(
    name: str, size: int, channels: tuple[int, int], kernel: int, stride: int = 1, padding: int = 0
) -> list[Layer]:
    """A convolution without bias and its batch normalisation."""
    pixels = window_positions(size, kernel, stride, padding) ** 2
    return [
        convolution(f"{name}.conv", size, channels, kernel, stride, padding, bias=False),
        normalisation(f"{name}.norm", channels[1], pixels),
    ]
