"""Parts of models that several formulations share."""
