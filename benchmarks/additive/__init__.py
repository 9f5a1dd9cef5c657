"""Benchmarks of private additive models."""
