"""Ratings: read, checked, and kept in rows of users."""
