"""Jobs in one piece, each with one of all its plans; see :class:`OnePiece`."""
