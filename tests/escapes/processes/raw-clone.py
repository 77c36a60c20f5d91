# Tries: processes by the raw calls: clone without flags, clone with a pidfd, clone3, whose flags no filter sees.
# Origin: moby#42680 on clone3 and filters; S10.

import os, struct

found = []
for make in (
    lambda: native.call("clone", 17, 0, 0, 0, 0),
    lambda: native.call("clone3", struct.pack("8Q", 0, 0, 0, 0, 17, 0, 0, 0), 64),
):
    pid = make()
    if pid == 0:
        native.call("mkdirat", -100, input["write"], 0o755)
        native.call("exit_group", 0)
    found.append(pid)
    if pid > 0:
        os.waitpid(pid, 0)
found
