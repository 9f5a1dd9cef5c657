"""Tools for working on the library."""
