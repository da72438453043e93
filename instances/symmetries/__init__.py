"""Instances that ask the same as another one: renamed, reordered, in other units, later, split or extended."""

from ddlopt.instances.symmetries.changes import (
    Twin,
    extended,
    later,
    renamed,
    reordered,
    scaled,
    twins,
)
from ddlopt.instances.symmetries.walk import UntranslatedError

__all__ = [
    "Twin",
    "UntranslatedError",
    "extended",
    "later",
    "renamed",
    "reordered",
    "scaled",
    "twins",
]
