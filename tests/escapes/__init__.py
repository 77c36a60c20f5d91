"""The corpus of hostile programs (`<category>/<name>.ts|js|py`), what they are lured with, and the ways in which they run."""
