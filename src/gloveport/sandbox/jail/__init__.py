"""The jail: everything that confines a guest. These modules import only the standard library.

Most of them run in the fork server, which starts, confines and reaps guests. Some also run in the zygote, which
`engines.zygote_launch` copies into the jail; its list `_ZYGOTE_MODULES` names them. The host imports a few for their types
and limits (channel, filesystem, limits, strength).

    fork server            fork_server     answers the host: starts guests, sets limits, reaps
                           probes          tries each layer in a child and reports which ones work here
                           strength        which layers make the strength `full`, `kernel` or `none`
                           filesystem      the root that guests see, and the files they may open
                           elf             the shared libraries that an engine needs
                           zygote_client   starts the zygote and has it fork guests
    fork server + zygote   confinement     the steps that put a new process into the jail, in order
                           namespaces      user, PID, network, IPC, UTS and cgroup namespaces; reused networks
                           landlock        which files a process may open
                           seccomp         which system calls a process may make
                           privileges      root, capabilities, descriptors
                           limits          resource limits
                           prefault        page ranges to map in new guests before they run
                           syscalls        system call numbers, and `call` for those that Python lacks
                           channel         messages with descriptors over a UNIX socket
    zygote                 zygote          forks guests; each fork confines itself and runs the guest package
                           heap            packs the zygote's memory, so that a guest copies few of its pages
"""
