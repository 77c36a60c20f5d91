# Tries: POSIX shared memory with a name, as multiprocessing offers it.
# Origin: S16; /dev/shm.

import _posixshmem, mmap, os

name, size = "/" + input["name"], 100
file = _posixshmem.shm_open(name, os.O_CREAT | os.O_RDWR, 0o600)
if input["round"] == 1:
    os.ftruncate(file, size)
    mmap.mmap(file, size)[: len(input["plant"])] = input["plant"].encode()
found = mmap.mmap(file, size)[:]
if input["round"] == 2:
    _posixshmem.shm_unlink(name)
found
