# Tries: exec over the interpreter itself: what comes after has no prelude, and maybe no limits.
# Origin: S10; LD_PRELOAD and PYTHONSTARTUP in the new environment.

import os, sys

found = []
text = f"open({input['write']!r}, 'w').write('written')"
environment = {"LD_PRELOAD": input["file"], "PYTHONINSPECT": "1"}
for program, words in (
    ("/bin/sh", ["sh", "-c", f"echo written > '{input['write']}'"]),
    (sys.executable or "/usr/bin/python3", ["python", "-c", text]),
    ("/usr/bin/python3.11", ["python", "-c", text]),
    ("/proc/self/exe", ["python", "-c", text]),
):
    try:
        os.execve(program, words, environment)
    except OSError as error:
        found.append(str(error))
found
