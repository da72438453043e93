"""Special exact methods for orders of micro-batches."""
