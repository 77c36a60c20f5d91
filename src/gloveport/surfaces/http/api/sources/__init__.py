"""The endpoints of sources.

sources     lists, adds, removes and refreshes sources
sign_ins    signs in to the accounts of sources
clients     what MCP clients need to reach this server
"""
