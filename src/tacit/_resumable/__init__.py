"""Folders in which one process keeps a model that resumes, and its one charge."""
