"""Links, rings and routes that look the same from every server."""
