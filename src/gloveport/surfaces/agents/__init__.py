"""What agents use of a port: the tools `search`, `describe` and `execute`.

`tools` implements them · `descriptions` holds the texts and schemas that a model reads · `result_store` keeps long results
so that an agent can read on · `code_tool` is `execute` alone, for Python frameworks (`gloveport.code_tool`); the modules in
`surfaces/adapters/` fit it to each framework.
"""
