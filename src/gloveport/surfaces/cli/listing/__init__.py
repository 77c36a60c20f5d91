"""`gloveport tools list` and `search`, which start no server.

command      the two commands: what they show, and which sources they have to open
tool_lists   the list of tools that each source had when it was last open, on disk
"""
