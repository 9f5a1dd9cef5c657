"""Item sides, which are published, and the predictions that users make from them."""
