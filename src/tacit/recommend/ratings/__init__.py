"""Ratings: what is public about them, reading, and rows of users."""
