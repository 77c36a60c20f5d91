"""The system calls that native payloads make, by name, for the machine that this is."""

import os

# Name, x86_64, aarch64.
_TABLE = """
read 0 63   write 1 64   close 3 57   mmap 9 222   mprotect 10 226   getpid 39 172   socket 41 198   connect 42 203
sendto 44 206   bind 49 200   socketpair 53 199   clone 56 220   execve 59 221   wait4 61 260   kill 62 129   fcntl 72 25
ptrace 101 117   chroot 161 51   mount 165 40   pivot_root 155 41   sethostname 170 161   openat 257 56
pread64 17 67   ioctl 16 29   shmget 29 194   setpriority 141 140   prctl 157 167   futex 202 98   exit 60 93
exit_group 231 94   sched_setaffinity 203 122   sched_setscheduler 144 119   add_key 248 217   inotify_init1 294 26
perf_event_open 298 241   fanotify_init 300 262   name_to_handle_at 303 264   open_by_handle_at 304 265
prlimit64 302 261   setns 308 268   process_vm_readv 310 270   rt_sigqueueinfo 129 138   memfd_create 319 279
bpf 321 280   execveat 322 281   userfaultfd 323 282   unshare 272 97   io_uring_setup 425 425
pidfd_send_signal 424 424   pidfd_open 434 434   clone3 435 435   openat2 437 437   pidfd_getfd 438 438   fsopen 430 430
open_tree 428 428   nanosleep 35 101   getdents64 217 61   ftruncate 77 46   mkdirat 258 34   symlinkat 266 36
linkat 265 37   mknodat 259 33   uname 63 160   signalfd4 289 74   timerfd_create 283 85   epoll_create1 291 20
process_madvise 440 440   vmsplice 278 75   splice 275 76   sendmsg 46 211   mq_open 240 180   tgkill 234 131
readlinkat 267 78   sendfile 40 71   pipe2 293 59   copy_file_range 326 285   io_setup 206 0   io_submit 209 2
madvise 28 233   munmap 11 215   rt_sigprocmask 14 135   tee 276 77   ioprio_set 251 30   personality 135 92
seccomp 317 277   semget 64 190   msgget 68 186   mlock 149 228   keyctl 250 219   sched_setattr 314 274
process_vm_writev 311 271   dup3 292 24   setsid 112 157   prctl 157 167   rt_sigtimedwait 128 137
timer_create 222 107   mq_timedsend 242 182   mq_timedreceive 243 183   mq_unlink 241 181   add_key 248 217
sched_getaffinity 204 123   gettid 186 178   memfd_secret 447 447   fspick 433 433   move_mount 429 429
shmat 30 196   pwrite64 18 68
recvfrom 45 207   clock_gettime 228 113   clock_getres 229 114   clock_nanosleep 230 115
set_tid_address 218 96   set_robust_list 273 99   sysinfo 99 179
pkey_mprotect 329 288   remap_file_pages 216 234   setitimer 38 103
"""


def _numbers() -> dict[str, int]:
    words = _TABLE.split()
    column = 2 if os.uname().machine == "aarch64" else 1
    return {words[start]: int(words[start + column]) for start in range(0, len(words), 3)}


NUMBERS = _numbers()
