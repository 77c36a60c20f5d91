# Tries: an audit hook, which hears of everything in the interpreter and can't be removed.
# Origin: PEP 578: hooks are for ever.

import sys

if input["round"] == 1:
    plant = input["plant"]

    def hook(event, args):
        if event == "gloveport.asks":
            args[0].append(plant)

    sys.addaudithook(hook)
box = []
sys.audit("gloveport.asks", box)
box
