"""A server's list of tools → rows. Pure: no connection, no credential, no I/O. Only tasks import it: the list is hostile.

task    what a jailed process runs: pages of tools → batches of rows
tools   the list → rows, with unusable tools left out
names   the server's names → identifiers
"""
