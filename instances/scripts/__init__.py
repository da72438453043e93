"""Scripts that run where ddlopt is not installed; ``ddlopt`` prints them."""
