# Tries: worker processes of multiprocessing and concurrent.futures, forked and spawned.
# Origin: what a data scientist's program does first.

import multiprocessing, os

context = multiprocessing.get_context("fork")
made = context.Process(target=lambda: os.mkdir(input["write"]))
made.start()
made.join()
made.exitcode
