"""Where the rows of the benchmarks of streams go; see `benchmarks.tables`."""

from benchmarks.tables import Results

RESULTS = Results.beside(__file__)
