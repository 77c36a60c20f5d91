# Tries: source text in an encoding that hides it from whoever reads it as UTF-8.
# Origin: PEP 263 cookies (utf-7, rot13) against scanners of source; S22.

space = {}
exec(b"# coding: utf-7\nout = +AG8AcABlAG4-(input['file']).read()", space)
space["out"]
