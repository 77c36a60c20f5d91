"""Packages on the host: what a person adds, and what the process of a Python run gets of it."""
