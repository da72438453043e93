"""Whether a bandwidth is of a size that there is, or bits and bytes have been mixed up."""

from dataclasses import dataclass

# A definition.
_BITS = 8
# An eighth of it: a measured figure may be that much below a nominal one.
_NEAR = 1.125


@dataclass(frozen=True)
class Scale:
    """What figures of a unit are usual.

    Parameters
    ----------
    unit : str
    other : str
        The unit that it is mixed up with, and
    factor : float
        how many of it one is.
    least, most : float
        Beyond which nothing is sensible.
    usual : tuple of float
        Nominal figures. One that is near none of them, while eight times or an eighth of it is, is asked about.
    """

    unit: str
    other: str
    factor: float
    least: float
    most: float
    usual: tuple[float, ...] = ()

    def doubt(self, value: float) -> str:
        """Why a figure may be meant otherwise; an empty text if it is sensible."""
        meant = self._meant(value)
        if meant is not None:
            return f"{value:g} {self.unit} are unusual, and {value:g} {self.other} are {meant:g} {self.unit}"
        if not self.least <= value <= self.most:
            return f"{value:g} {self.unit} are beyond anything sensible, {self.least:g} to {self.most:g}"
        return ""

    def _meant(self, value: float) -> float | None:
        """What the figure is if it is in the other unit and that makes a usual one."""
        meant = value / self.factor
        nominal = self.usual and not _near(value, self.usual) and _near(meant, self.usual)
        outside = not self.least <= value <= self.most and self.least <= meant <= self.most
        return meant if nominal or outside else None


def _near(value: float, usual: tuple[float, ...]) -> bool:
    return any(each / _NEAR <= value <= each * _NEAR for each in usual)


NETWORK = Scale(
    "Gb/s",
    "GB/s",
    1 / _BITS,
    0.5,
    4000,
    (1, 2.5, 5, 10, 20, 25, 40, 50, 56, 100, 200, 400, 800, 1600, 3200),
)
"""Network cards and links; figures are speeds of Ethernet and InfiniBand, and of eight such cards."""
WITHIN = Scale("GB/s", "Gb/s", _BITS, 1, 1800)
"""Of an accelerator inside its server, from a lane or two of PCIe to all of NVLink."""
MEMORY = Scale("GB/s", "Gb/s", _BITS, 20, 20000)
"""Of an accelerator's memory."""
