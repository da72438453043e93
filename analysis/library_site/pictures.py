"""Pictures of the best known solutions, kept from one time to the next."""

import hashlib
import io
from pathlib import Path

from ddlopt import instances
from ddlopt.analysis.views import picture_of
from ddlopt.models.files import write_whole

_COLOURS = 64
"""Of a picture; with so few it takes a third of the bytes."""


def drawn(name: str, kept: Path) -> Path | None:
    """The picture of an instance's best known solution, drawn unless it is kept; None where there is none.

    Parameters
    ----------
    name : str
        Of the instance.
    kept : Path
        Folder of pictures; their names are digests of instance and solution.
    """
    instance, solution = instances.load(name), instances.best(name)
    draw = picture_of(instance)
    if solution is None or draw is None:
        return None
    digest = hashlib.sha256(f"{instance.digest} {solution.to_json()}".encode()).hexdigest()
    file = kept / f"{digest[:32]}.png"
    if not file.exists():
        from matplotlib.figure import Figure
        from PIL import Image

        figure, image = Figure(figsize=(6.0, 5.0), layout="constrained"), io.BytesIO()
        draw(figure.add_subplot(), instance, solution)
        figure.savefig(image, format="png", dpi=80)
        smaller = io.BytesIO()
        Image.open(image).convert("RGB").quantize(_COLOURS).save(smaller, "png", optimize=True)
        kept.mkdir(parents=True, exist_ok=True)
        write_whole(file, smaller.getvalue())
    return file
