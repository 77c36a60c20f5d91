"""`gloveport tools`.

command      the commands that look at tools or call one, and those that accept or trust a source
listing      `tools list` and `tools search`, which start no server
tool_lists   the list of tools that each source had when it was last open, on disk
"""
