"""Instances that ask the same as another one: renamed, reordered, in other units, later, split or extended."""

from ddlopt.instances.symmetries.changes import (
    Twin,
    extended,
    later,
    regrouped,
    renamed,
    reordered,
    scaled,
    twins,
)
from ddlopt.instances.symmetries.tightened import Tight, tight
from ddlopt.instances.symmetries.walk import UntranslatedError

__all__ = [
    "Tight",
    "Twin",
    "UntranslatedError",
    "extended",
    "later",
    "regrouped",
    "renamed",
    "reordered",
    "scaled",
    "tight",
    "twins",
]
