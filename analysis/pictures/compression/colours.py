"""Colours of what is sent, by compressor."""

WIRE = {
    "none": "#1f6fb4", "fp16": "#17a2b8", "top_k": "#d95f02", "dgc": "#d95f02", "random_k": "#b8860b",
    "qsgd": "#7f9f3f", "sign": "#8c4a9e", "onebit": "#8c4a9e", "powersgd": "#3a9d5d", "sfb": "#c0392b",
}  # fmt: skip
