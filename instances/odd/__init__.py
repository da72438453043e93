"""Small instances that are odd on purpose: ties, zeros, unequal sizes, and what else a schema allows.

Generators draw what a paper's instances look like, and a method that is only tried on those may take for granted what
they have in common: groups of one size, every server in some group, something to send. :func:`odd_instance` begins with
a small drawn instance of a problem and changes one field after the other, as far as the instance stays one. In most it
then also says what the instance left at its default, so that options meet that are rarely used together.
"""

from ddlopt.instances.odd.changes import SETTINGS, changed
from ddlopt.instances.odd.draws import odd_instance

__all__ = ["SETTINGS", "changed", "odd_instance"]
