"""co-design instances, one JSON file each; the best known solution of NAME.json is in NAME.best.json(.gz)."""

from ddlopt.instances.library.codesign.instances import instances

__all__ = ["instances"]
