"""Votes of teachers, and private answers from them."""
