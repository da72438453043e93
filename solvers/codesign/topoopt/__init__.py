"""TopoOpt's alternating optimization, as its paper has it and as it was released."""
