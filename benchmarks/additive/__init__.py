"""Additive models: against DP-EBM, linear models and models without privacy."""
