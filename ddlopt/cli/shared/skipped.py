"""Rows of a store that cannot be read."""

from typing import Any

from ddlopt.cli.shared.arguments import tell


def tell_skipped(store: Any) -> None:
    """Say which rows of a store were left out, the first few by name."""
    told = [f"{name}: {fault}" for name, fault in store.skipped.items()]
    if told:
        more = f"; and {len(told) - 3} more" if len(told) > 3 else ""
        tell(f"ddlopt: {len(told)} rows of {store.path} are left out: {'; '.join(told[:3])}{more}")
