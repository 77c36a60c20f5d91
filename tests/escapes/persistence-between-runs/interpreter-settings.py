# Tries: settings of the interpreter and of its thread as a place to keep a text.
# Origin: own idea: state that no module holds.

import sys, threading

if input["round"] == 1:
    sys.displayhook = input["plant"]
    threading.current_thread().name = input["plant"]
    native.call("prctl", 15, input["plant"][:15], 0, 0, 0)
[str(sys.displayhook), threading.current_thread().name]
