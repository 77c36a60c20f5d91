"""`gloveport store`: copies the store and changes its key, while hosts run."""
