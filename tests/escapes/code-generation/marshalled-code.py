# Tries: a code object out of bytes, with marshal: nothing of it was ever text here.
# Origin: malware in .pyc files; pyjail collections.

import marshal, types

data = marshal.dumps(compile("open(input['file']).read()", "x", "eval"))
types.FunctionType(marshal.loads(bytes(data)), {})()
