"""Solvers of matrix completion, and the noisy sums over users that they release."""
