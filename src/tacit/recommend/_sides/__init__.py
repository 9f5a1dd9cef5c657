"""Item sides, and what users make of them at home."""
