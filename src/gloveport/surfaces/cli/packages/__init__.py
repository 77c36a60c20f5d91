"""`gloveport packages`: the packages of npm and PyPI that programs may import."""
