# Tries: the frames of functions that others call, by the hooks for debuggers and profilers.
# Origin: sys.settrace and sys.setprofile in pyjail collections.

import sys, textwrap

frames = []


def trace(frame, event, argument):
    frames.append(frame)


sys.settrace(trace)
textwrap.dedent("x")
sys.settrace(None)
sys.setprofile(trace)
textwrap.dedent("y")
sys.setprofile(None)
[frame.f_builtins["open"](input["file"]).read() for frame in frames[:1]] + [len(frames)]
