"""The audits of `tacit.audit` on another library and on this one, in the same run.

Each library works in an environment of its own, see `benchmarks.peers`; the code that
attacks and judges is the same file in both.
"""
