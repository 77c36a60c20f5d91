# Tries: the environment and the command line of a process of the host, by /proc.
# Origin: S9; secrets in environments.

[open(f"/proc/{input['pid']}/{name}", "rb").read() for name in ("environ", "cmdline")]
