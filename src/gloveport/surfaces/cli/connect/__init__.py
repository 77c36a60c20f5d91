"""`gloveport connect`: adds Gloveport to the configuration file of an MCP client.

command   the command: shows the change, asks, backs the file up and writes it
entries   puts a server's entry into the text of a JSON or TOML file with the smallest change
jsonc     JSON with comments, edited in place
"""
