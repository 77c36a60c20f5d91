"""The endpoints for whoever writes a program: checks, completion, and examples to start from.

programs           the endpoints
example_programs   the examples in `examples/`, and which of them a caller can run
"""
