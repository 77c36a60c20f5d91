# Tries: inotify and fanotify: who opens what on the host.
# Origin: fanotify as a keylogger for files.

[native.call("inotify_init1", 0), native.call("fanotify_init", 0, 0)]
