"""Calls against other people's servers, which judge them: `make prism` and `make services`. Not part of `make test`."""
