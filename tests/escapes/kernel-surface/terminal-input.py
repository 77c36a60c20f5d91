# Tries: TIOCSTI and TIOCLINUX: input pushed into a terminal of the host.
# Origin: CVE-2017-5226 (bubblewrap), CVE-2023-1523 (snap).

file = native.call("openat", -100, input["tty"], 2, 0)
[file] + [native.call("ioctl", target, command, b"x\0\0\0") for command in (0x5412, 0x541C) for target in (file, 0, 1, 2)]
