"""Models that learn from people without telling on them."""
