# Tries: names left in builtins and in the modules that every program finds loaded.
# Origin: S16; warm interpreters of serverless platforms.

import builtins, json, sys

if input["round"] == 1:
    builtins.planted = json.planted = sys.planted = input["plant"]
[getattr(place, "planted", None) for place in (builtins, json, sys)]
