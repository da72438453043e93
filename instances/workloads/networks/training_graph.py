"""The operators of one training step: forward pass, errors (gradients of what an operator read), parameter gradients.

A :class:`Tape` records the forward pass and derives the backward pass from it as automatic differentiation does, with
these rules (y = f(x) is an operator, e the error at y, the sum of the errors from all that read y):

================================= ========================= ===================================================
operator                          error at x reads          gradients of parameters read
================================= ========================= ===================================================
dense layer, convolution          e                         weight: x and e, bias: e
layer or batch normalisation      x, e                      scale and shift, one operator: x and e
lookup of rows                    (none: x are indices)     table, all its rows: x and e
maximum pooling                   e, x, y
mean pooling, selection of a part e
ReLU, tanh, softmax               e, y
GELU                              e, x
product of two activations        e and the other factor
addition                          no operator, it is e
================================= ========================= ===================================================

Every operator hands on at most one tensor. Weights are read, but every replica has them, so that they are no tensors of
the graph. Dropout, scaling, added constants and reshaping are left out.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from ddlopt.instances.workloads.accelerators import Accelerator
from ddlopt.instances.workloads.networks.layers import Layer
from ddlopt.instances.workloads.precision import FP32, Precision

Need = Literal["input", "output"]
"""What the error at an operator's input depends on besides the error at its output."""


@dataclass(frozen=True)
class GraphOperator:
    """An operator of a training step; all counts are of numbers and for *one sample*, unless told.

    Parameters
    ----------
    name : str
    reads : tuple of int
        Operators, all before this one, whose outputs it reads; each once.
    numbers : int
        Of the output that others read; 0 if none does.
    flops : int
    parameters : int
        Numbers of weights read, or of a gradient written, whatever the batch.
    gradient : int
        Numbers of the parameter gradient that is all-reduced.
    partial : int
        Numbers of an output that is a sum over the samples, which no batch makes larger: each replica has a summand.
    convolution : bool
        Which of the accelerator's rates counts.
    local : bool
        Whether it must not run for the samples of other replicas: it takes in a replica's own samples, or normalises
        by their mean and variance.
    precision : Precision
    """

    name: str
    reads: tuple[int, ...] = ()
    numbers: int = 0
    flops: int = 0
    parameters: int = 0
    gradient: int = 0
    partial: int = 0
    convolution: bool = False
    local: bool = False
    precision: Precision = FP32

    @property
    def gradient_bytes(self) -> int:
        """Bytes of the gradient that is all-reduced."""
        return self.precision.gradient_bytes * self.gradient

    def output_bytes(self, batch: int, replicas: int = 1) -> int:
        """Bytes of the output for a batch, and of the summands of a number of replicas."""
        return self.precision.number_bytes * (batch * self.numbers + replicas * self.partial)


def operator_time_s(operators: Sequence[GraphOperator], place: int, accelerator: Accelerator, batch: float) -> float:
    """Roofline: operations, or reading inputs and weights and writing the output, whichever takes longer."""
    own = operators[place]
    rate = accelerator.convolution_flops_per_s if own.convolution else accelerator.flops_per_s
    handled = (own, *(operators[read] for read in own.reads))
    fixed_bytes = own.precision.number_bytes * own.parameters + sum(each.output_bytes(0) for each in handled)
    moved_bytes = fixed_bytes + batch * sum(each.output_bytes(1, 0) for each in handled)
    return max(batch * own.flops / rate, moved_bytes / accelerator.memory_bytes_per_s)


Backward = Callable[[int], None]
"""Given the operator with the error at an output, records what computes errors at inputs and gradients."""


class Tape:
    """Records operators; methods of the forward pass return the place of the operator with the output.

    Parameters
    ----------
    shared : sequence of str
        Layers whose weight others use as well: the gradients of all of them are added before they are all-reduced.
    """

    def __init__(self, shared: Sequence[str] = ()) -> None:
        self.operators: list[GraphOperator] = []
        self._backward: list[tuple[int, Backward]] = []
        self._errors: dict[int, list[int]] = {}
        self._summands: dict[str, list[int]] = {name: [] for name in shared}

    def data(self, name: str, numbers: int) -> int:
        """What each replica takes in for its own samples; nothing wants the error at it."""
        return self._record(GraphOperator(name, numbers=numbers, local=True))

    def linear(self, layer: Layer, source: int, owner: Layer | None = None) -> int:
        """A dense layer or a convolution; ``owner``: whose weight it uses, if not its own.

        Tensors other than the weight are a bias, or what the weight is calculated from besides.
        """
        weight = math.prod(dict((owner or layer).tensors)["weight"])

        def operator(role: str, reads: tuple[int, ...], numbers: int, parameters: int) -> GraphOperator:
            name = f"{layer.name}/{role}"
            return GraphOperator(name, reads, numbers, layer.flops, parameters, convolution=layer.convolution)

        def backward(error: int) -> None:
            self._send(source, operator("error", (error,), layer.inputs, weight))
            for tensor, shape in layer.tensors:
                if tensor != "weight":
                    gradient = GraphOperator(f"{layer.name}/{tensor}", (error,), 0, layer.outputs, math.prod(shape))
                    self._gradient(gradient)
            self._gradient(operator("weight", (source, error), 0, weight), owner or layer)

        parameters = layer.parameters + (weight if owner else 0)
        return self._forward(operator("forward", (source,), layer.outputs, parameters), backward)

    def normalisation(self, layer: Layer, source: int, over_batch: bool = False, owner: Layer | None = None) -> int:
        """Layer normalisation, or batch normalisation: ``over_batch``; ``owner``: whose scale, if not its own."""
        parameters = (owner or layer).parameters

        def operator(role: str, reads: tuple[int, ...], numbers: int) -> GraphOperator:
            name = f"{layer.name}/{role}"
            return GraphOperator(name, reads, numbers, layer.flops, parameters, local=over_batch)

        def backward(error: int) -> None:
            self._send(source, operator("error", (source, error), layer.inputs))
            self._gradient(operator("scale and shift", (source, error), 0), owner or layer)

        return self._forward(operator("forward", (source,), layer.outputs), backward)

    def lookup(self, layer: Layer, indices: int, owner: Layer | None = None) -> int:
        """Rows of a table, whose gradient, of all rows, adds the errors up; ``owner``: whose table, if not its own.

        Reading the rows is not counted, only the output.
        """
        table = owner or layer

        def backward(error: int) -> None:
            self._gradient(GraphOperator(f"{layer.name}/weight", (indices, error), parameters=table.parameters), table)

        return self._forward(GraphOperator(f"{layer.name}/forward", (indices,), layer.outputs), backward)

    def unary(
        self, name: str, source: int, numbers: int = 0, flops: int = 0, needs: Sequence[Need] = (), parameters: int = 0
    ) -> int:
        """Anything of one activation; ``numbers``: of the output, if not those of the input.

        Activation functions are bound by memory: operations need not be counted.
        """

        def backward(error: int) -> None:
            needed = tuple(source if each == "input" else place for each in needs)
            received = self.operators[source].numbers
            self._send(source, GraphOperator(f"{name}/error", (*needed, error), received, flops))
            if parameters:
                self._gradient(GraphOperator(f"{name}/scale", (*needed, error), 0, 0, parameters))

        outputs = numbers or self.operators[source].numbers
        place = self._forward(GraphOperator(f"{name}/forward", (source,), outputs, flops), backward)
        return place

    def split(self, name: str, source: int, parts: Sequence[str]) -> list[int]:
        """Equal parts of an output, copied; their errors are put together again."""
        numbers = self.operators[source].numbers // len(parts)
        errors: list[int] = []

        def backward(error: int) -> None:
            errors.append(error)
            if len(errors) == len(parts):
                self._send(source, GraphOperator(f"{name}/error", tuple(errors), numbers * len(parts)))

        return [self._forward(GraphOperator(f"{name}.{part}/forward", (source,), numbers), backward) for part in parts]

    def concatenation(self, name: str, sources: Sequence[int]) -> int:
        """Several outputs copied into one; their errors are the parts of its error."""

        def backward(error: int) -> None:
            for part, source in enumerate(sources):
                self._send(source, GraphOperator(f"{name}/error {part}", (error,), self.operators[source].numbers))

        numbers = sum(self.operators[source].numbers for source in sources)
        return self._forward(GraphOperator(f"{name}/forward", tuple(sources), numbers), backward)

    def product(self, name: str, left: int, right: int, numbers: int, flops: int) -> int:
        """A product of two different activations."""

        def backward(error: int) -> None:
            for side, own, other in (("left", left, right), ("right", right, left)):
                received = self.operators[own].numbers
                self._send(own, GraphOperator(f"{name}/{side} error", (other, error), received, flops))

        return self._forward(GraphOperator(f"{name}/forward", (left, right), numbers, flops), backward)

    def addition(self, name: str, *sources: int) -> int:
        """The sum of several outputs, at each of which the error is the same."""

        def backward(error: int) -> None:
            for source in sources:
                self._errors.setdefault(source, []).append(error)

        return self._forward(GraphOperator(f"{name}/forward", sources, self.operators[sources[0]].numbers), backward)

    def loss(self, source: int, labels: int) -> tuple[GraphOperator, ...]:
        """The error at the network's output, and from it the whole backward pass.

        Returns
        -------
        tuple of GraphOperator
            The step.
        """
        self._send(source, GraphOperator("loss", (source, labels), self.operators[source].numbers))
        for place, backward in reversed(self._backward):
            if place in self._errors:  # nothing wants the error at what rows are looked up by
                backward(self._error(place))
        for name, summands in self._summands.items():
            numbers = self.operators[summands[0]].partial
            self._record(GraphOperator(f"{name}/weight sum", tuple(summands), parameters=numbers, gradient=numbers))
        return tuple(self.operators)

    def _record(self, operator: GraphOperator) -> int:
        self.operators.append(operator)
        return len(self.operators) - 1

    def _forward(self, operator: GraphOperator, backward: Backward) -> int:
        place = self._record(operator)
        self._backward.append((place, backward))
        return place

    def _send(self, target: int, operator: GraphOperator) -> None:
        """Record an operator that computes (a summand of) the error at an output, unless nothing wants that."""
        if self.operators[target].reads:
            self._errors.setdefault(target, []).append(self._record(operator))

    def _error(self, place: int) -> int:
        """The operator with the whole error at an output."""
        summands = self._errors[place]
        if len(summands) == 1:
            return summands[0]
        name = self.operators[place].name.removesuffix("forward")
        return self._record(GraphOperator(f"{name}error sum", tuple(summands), self.operators[place].numbers))

    def _gradient(self, operator: GraphOperator, owner: Layer | None = None) -> None:
        """Record an operator that computes (a summand of) a parameter gradient."""
        if owner is not None and owner.name in self._summands:
            self._summands[owner.name].append(self._record(replace(operator, partial=operator.parameters)))
        else:
            self._record(replace(operator, gradient=operator.parameters))
