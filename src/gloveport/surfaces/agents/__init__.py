"""What agents use of a port: the tools `search`, `describe` and `execute`.

tools              implements them
tool_descriptions  the texts and schemas that a model reads
result_store       keeps long results, so that an agent can read on
code_tool          `execute` alone, for Python frameworks (`gloveport.code_tool`); surfaces/adapters/ fits it to each
"""
