"""Folders in which a model with a single charge survives its process."""
