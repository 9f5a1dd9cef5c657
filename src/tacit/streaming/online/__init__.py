"""Online learners: one gradient or one follow-the-leader step per step."""
