"""A bound over the load classes of all layers but embedding tables, whose strategies are taken in parts."""

from dataclasses import dataclass

from ddlopt.frontier.codesign.classes import closed_parts_below
from ddlopt.frontier.codesign.joint.exclusion import Blocks
from ddlopt.frontier.codesign.joint.open_links import OpenPart, Options
from ddlopt.frontier.codesign.layer_tree import is_tree
from ddlopt.frontier.codesign.open_layers import (
    needs_of,
    open_layers,
    strategies_of_readers,
    tables_left_open,
)
from ddlopt.frontier.engines.best_first import OpenNodes
from ddlopt.models.codesign.instance import CodesignInstance
from ddlopt.models.codesign.tables import tables_of
from ddlopt.solvers.heuristic import Clock


@dataclass(frozen=True)
class Effort:
    """How far the bound of open parts is raised.

    Parameters
    ----------
    parts : int
        Ways to choose for some layers in the listing, which take a second or two.
    servers : int
        Servers up to which programs have routes to all others; beyond, they take minutes.
    first_step, least_step : float
        Parts of the distance to the target by which a part is raised at once. A step that fails is halved, and a
        program for less than the last one gains less than it takes.
    program_s : float
        Seconds after which a program is given up, so that one part does not take the time of all.
    """

    parts: int = 200_000
    servers: int = 16
    first_step: float = 1 / 2
    least_step: float = 1 / 64
    program_s: float = 40.0


_EFFORT = Effort()


@dataclass
class _Raised:
    """A part, and the seconds by which its bound is to be raised next."""

    part: OpenPart
    step_s: float = 0.0


def bound_by_open_parts(
    instance: CodesignInstance, target_s: float, seed: int, clock: Clock, known_s: float = 0.0
) -> float:
    """Seconds that no plan takes less than, at most ``target_s``; 0 where there are too many parts, or no tables.

    A part is a load class of all other layers (:func:`.closed_parts_below`). The part of least bound is raised first:
    its bound is raised by a step if no links of a block of servers, or of all where blocks are not symmetric, serve it
    in that time with any strategies of the tables (:func:`.links_of_block`). ``known_s`` is a bound for all plans, from
    which it begins.
    """
    tables = tables_of(instance)
    layers = tables_left_open(tables) if is_tree(instance) else ()
    if not layers or not instance.host_forwarding or instance.servers > _EFFORT.servers:
        return 0.0
    blocks = Blocks(instance)
    left: OpenNodes[_Raised] = OpenNodes()
    for readers in strategies_of_readers(tables, layers):
        found = closed_parts_below(instance, layers, readers, target_s, _EFFORT.parts)
        if found is None or clock.expired:
            return 0.0
        options = Options(instance, open_layers(tables, layers, readers))
        for each in found:
            part = OpenPart(needs_of(tables, *each), options)
            least_s = part.least_s(target_s)
            if least_s < target_s:
                left.push(max(least_s, known_s), _Raised(part))
            if clock.expired:
                return 0.0
    if not left:
        return target_s
    distance = target_s - left.least
    for first in left:
        first.step_s = distance * _EFFORT.first_step
    while left:
        bound_s, lowest = left.first()
        level = min(target_s, bound_s + lowest.step_s)
        if lowest.step_s < distance * _EFFORT.least_step or clock.expired:
            return bound_s
        if not blocks.exclude(lowest.part, level, seed, clock, _EFFORT.program_s):
            lowest.step_s /= 2
        elif level < target_s:
            left.raise_first(level)
        else:
            left.pop()
    return target_s
