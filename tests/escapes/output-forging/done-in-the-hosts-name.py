# Tries: the last message of a run, forged on the wire with the code of a limit.
# Origin: S6; a worker that was taken over.

import json, os

text = json.dumps(["done", "error", {"code": "cpu-limit", "message": "the program used more than 30 s of CPU time"}, {}]).encode()
for file in range(3, 64):
    try:
        os.write(file, len(text).to_bytes(4, "big") + text)
    except OSError:
        pass
await tools.add(1, 2)
