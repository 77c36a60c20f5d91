"""Calls to third-party servers that validate them: `make prism` and `make services`. Not part of `make test`."""
