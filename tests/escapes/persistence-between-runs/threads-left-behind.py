# Tries: a thread that outlives the program and waits for the next one.
# Origin: S16; daemon threads in warm interpreters.

import _thread, builtins, threading

if input["round"] == 1:
    plant, builtins.asked, builtins.answered = input["plant"], threading.Event(), threading.Event()

    def wait():
        asked.wait()
        builtins.answer = plant
        answered.set()

    _thread.start_new_thread(wait, ())
    found = None
else:
    builtins.asked.set()
    builtins.answered.wait(2)
    found = builtins.answer
found
