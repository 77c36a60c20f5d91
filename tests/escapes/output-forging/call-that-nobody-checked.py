# Tries: a call straight on the wire, of a tool that is not in the catalog and past every check in the guest.
# Origin: B1, S6: what the bridge must look up for itself.

import json, os

for number, name in ((1_000_000, "forged.tool"), (1_000_001, "__class__.forged"), (1_000_002, "executor.forged")):
    text = json.dumps(["call", number, name, [{"value": 1}]]).encode()
    for file in range(3, 64):
        try:
            os.write(file, len(text).to_bytes(4, "big") + text)
        except OSError:
            pass
await tools.add(1, 2)
