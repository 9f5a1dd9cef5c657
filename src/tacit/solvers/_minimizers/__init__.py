"""Steps that solvers share which release a perturbed minimizer."""
