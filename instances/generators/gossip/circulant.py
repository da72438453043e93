"""Instances of the problem ``circulant``."""

from typing import Literal, cast

import numpy as np

from ddlopt.instances.options import at_least, one_of
from ddlopt.models.gossip.circulant.instance import CirculantInstance


def circulant(rng: np.random.Generator, nodes: int = 64, degree: int = 4, goal: str = "gap") -> CirculantInstance:
    """A number of workers and of links; nothing is drawn.

    Parameters
    ----------
    nodes, degree : int
    goal : {"gap", "averaging"}
    """
    at_least("nodes", nodes, 3)
    at_least("degree", degree, 2)
    one_of("goal", goal, ("gap", "averaging"))
    wanted = cast(Literal["gap", "averaging"], goal)
    return CirculantInstance(name=f"circulant-n{nodes}-d{degree}", nodes=nodes, degree=degree, goal=wanted)
