"""A server's list of tools → tools of ours. Pure: no connection, no credential, no I/O.

tools   the list → tools, with unusable ones left out
names   the server's names → identifiers
"""
