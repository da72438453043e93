"""Pictures of choices of levels: the lanes of an iteration, as on the timeline."""

from ddlopt.analysis.pictures.compression.timeline import draw

__all__ = ["draw"]
