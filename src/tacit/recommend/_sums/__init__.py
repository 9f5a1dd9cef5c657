"""Sums over users in whole numbers, released with noise."""
