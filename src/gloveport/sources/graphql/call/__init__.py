"""Arguments → document → endpoint → value.

selection   the `select` argument → a checked selection set
document    a root field, its arguments and a selection → the document to send
endpoint    sends documents, with headers and credentials
response    a reply → the root field's value, or a ToolError
"""
