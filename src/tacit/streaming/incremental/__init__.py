"""Incremental regression: continual sums, projections, and refits."""
