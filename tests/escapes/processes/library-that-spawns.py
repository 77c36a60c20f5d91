# Tries: a process by every module that starts one: os, subprocess, multiprocessing, asyncio, pty, webbrowser, pydoc.
# Origin: GTFOBins for Python; n8n and smolagents payloads.

import asyncio, os, pydoc, subprocess, webbrowser

path, found = input["write"], []
for spawn in (
    lambda: subprocess.run(["touch", path]),
    lambda: os.system(f"touch '{path}'"),
    lambda: os.popen(f"touch '{path}'").read(),
    lambda: os.posix_spawnp("touch", ["touch", path], os.environ),
    lambda: os.spawnlp(os.P_WAIT, "touch", "touch", path),
    lambda: pydoc.pipepager("", f"touch '{path}'"),
    lambda: webbrowser.GenericBrowser(["touch", "%s"]).open(path),
):
    try:
        found.append(repr(spawn()))
    except Exception as error:
        found.append(repr(error))
try:
    made = await asyncio.create_subprocess_exec("touch", path)
    await made.wait()
except Exception as error:
    found.append(repr(error))
found
