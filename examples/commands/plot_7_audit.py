"""
An attack on an estimator: tacit audit
======================================

The guarantee of a model is proved on paper. Does the code keep it? ``tacit audit`` fits
many times to pairs of tables that differ in one row, tries to distinguish them, and
prints a lower bound on epsilon. It generates these rows itself, so nothing is charged.
"""

from _shell import Shell

tacit = Shell()

# %%
# Few runs, so that this page is quick. More of them bring the bound closer to the
# truth.

tacit("audit tacit.linear_model:LinearSVC --epsilon 1 --runs 200 --jobs 1 --quiet")

# %%
# A bound below the guarantee refutes nothing, and proves nothing either. A bound above
# it would end with exit code 5, for use in tests of your own.
