# Tries: a module of its own in sys.modules, and one that takes the place of another.
# Origin: S16; dependency confusion inside of a process.

import sys, types

if input["round"] == 1:
    module = types.ModuleType("colorsys")
    module.planted = input["plant"]
    sys.modules["colorsys"] = sys.modules["of_another"] = module
[getattr(sys.modules.get(name), "planted", None) for name in ("colorsys", "of_another")]
