"""Packages of npm and PyPI that programs may import: asked for, approved by a person, fetched once, and kept read-only.

package      what a package is, and how it is asked for
npm, pypi    what a registry has: versions, dependencies, hashes
archives     a registry's archive → plain files, within bounds
store        the approved packages and their files, in the user's data folder
"""
