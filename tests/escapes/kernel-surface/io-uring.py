# Tries: a ring of io_uring, whose operations no seccomp filter sees.
# Origin: CVE-2022-29582, CVE-2023-2598; Google's ban of it.

native.call("io_uring_setup", 8, native.buffer(120))
