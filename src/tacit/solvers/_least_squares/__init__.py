"""Steps that solvers of private least squares share."""
