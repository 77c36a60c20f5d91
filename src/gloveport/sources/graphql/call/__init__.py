"""Arguments → document → endpoint → value.

selection_text  the `select` argument → a tree
selection       the tree → a checked selection set; `literals` checks arguments, `merging` fields of the same name
document        a root field, its arguments and a selection → the document to send
endpoint        sends documents, with headers and credentials
response        a reply → the root field's value, or a ToolError
"""
