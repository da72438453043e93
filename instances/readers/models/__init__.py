"""Networks in the formats of those who train them."""
