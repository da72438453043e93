"""The variants of the problem, each an object of the instance that says what it makes of a schedule."""
