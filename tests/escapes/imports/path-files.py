# Tries: a .pth file, whose lines that begin with import are run, and site to read it.
# Origin: .pth files as persistence (Kaspersky, 2023; LiteLLM's poisoned wheel).

import site

with open(input["directory"] + "/planted.pth", "w") as file:
    file.write(f"import io; io.open({input['write']!r}, 'w').write('written')\n")
site.addsitedir(input["directory"])
