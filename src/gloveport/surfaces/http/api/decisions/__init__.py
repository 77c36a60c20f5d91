"""The endpoints of what people decide ahead of any call.

policies   the rules: listed, explained and changed
"""
