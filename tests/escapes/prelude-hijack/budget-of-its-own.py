# Tries: the guest's own count of what it may still log, set to anything.
# Origin: S14: what is counted in the guest is not counted.

import gc

gc.unfreeze()
for item in gc.get_objects():
    if type(item).__name__ == "Output":
        item.left = 1 << 40
for _ in range(20):
    print("x" * 60_000)
