# Tries: the counter of calls set back, so that a call takes the number, and the reply, of another.
# Origin: S6; request identifiers in multiplexed protocols.

import gc

first = await tools.add(1, 2)
gc.unfreeze()
for item in gc.get_objects():
    if type(item).__name__ == "Calls":
        item._last_id = 0
await tools.echo(value=[first])
