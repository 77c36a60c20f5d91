# Tries: calls without the syntax of a call: subscripts, operators, comparisons and attributes that are functions.
# Origin: pyjail collections: __class_getitem__, __getattr__, overloaded operators.


class By:
    __class_getitem__ = open
    __slots__ = ()
    __getattr__ = lambda self, name: open(input["file"])
    __pos__ = lambda self: self.anything


class Operators(type):
    __sub__ = lambda self, path: open(path)
    __contains__ = lambda self, path: open(path).read()


class Target(metaclass=Operators): ...


[line for opened in [By[input["file"]], +By(), Target - input["file"]] for line in opened]
