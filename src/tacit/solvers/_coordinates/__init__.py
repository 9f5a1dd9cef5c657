"""Steps that private coordinate descents share."""
