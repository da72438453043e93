"""In which numbers a network is trained, and what training keeps of a parameter."""

from dataclasses import dataclass

from ddlopt.instances.options import one_of


@dataclass(frozen=True)
class Precision:
    """In which numbers a network is trained.

    Parameters
    ----------
    name : str
    number_bytes : int
        Of a number that layers read, write, keep and send to each other, and of a weight that products read.
    gradient_bytes : int
        Of a number of a gradient of parameters as it is summed up over replicas.
    state_bytes : int
        Of a parameter with all that training keeps for it, with Adam: in 16 bits the weight (2), its gradient (4), and
        in 32 bits a copy and two moments (12), as Megatron-LM's documentation of its distributed optimizer counts.
    """

    name: str
    number_bytes: int
    gradient_bytes: int
    state_bytes: int

    def __str__(self) -> str:
        return self.name


FP32 = Precision("fp32", 4, 4, 16)
BF16 = Precision("bf16", 2, 4, 18)
FP8 = Precision("fp8", 2, 4, 18)
"""Products alone are in 8 bits; what is kept and sent stays in 16, and the state is that of 16 bits."""
PRECISIONS = {"fp32": FP32, "bf16": BF16, "fp8": FP8}
"""By name; fp16 counts as bf16."""


def precision_of(wanted: str | Precision) -> Precision:
    """A precision, or the one of that name.

    Raises
    ------
    OptionError
        If there is none of that name.
    """
    if isinstance(wanted, Precision):
        return wanted
    one_of("precision", wanted, tuple(PRECISIONS))
    return PRECISIONS[wanted]
