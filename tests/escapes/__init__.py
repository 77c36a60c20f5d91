"""The corpus of hostile programs (`<category>/<name>.ts|js`), what they are lured with, and the ways in which they run."""
