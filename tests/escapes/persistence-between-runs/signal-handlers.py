# Tries: a handler for a signal that comes in the next run: an alarm, or one that the program sends itself.
# Origin: own idea: SIGALRM and setitimer as a time bomb.

import os, signal

if input["round"] == 1:
    plant = input["plant"]
    signal.signal(signal.SIGUSR1, lambda *_: emit(plant))
    native.call("setitimer", 0, bytes(32), 0)
elif signal.getsignal(signal.SIGUSR1) not in (signal.SIG_DFL, None):
    signal.raise_signal(signal.SIGUSR1)
