# Tries: code made from text that is put together at run time.
# Origin: the plain one.

text = "".join(map(chr, [111, 112, 101, 110])) + "(input['file'])." + "daer"[::-1] + "()"
space = {}
exec(compile("out = " + text, "x", "exec"), space)
[eval(text), space["out"]]
