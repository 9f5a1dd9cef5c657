"""Steps that private gradient descents share."""
