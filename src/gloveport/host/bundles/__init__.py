"""Bundles: the packages and modules that a JavaScript program imports, as one script that is made once."""
