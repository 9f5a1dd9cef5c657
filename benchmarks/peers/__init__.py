"""Other libraries, each in an environment of its own, run as separate processes."""
