# Tries: files by the modules that write as a side effect: logs, databases, tracebacks, profiles, archives.
# Origin: sinks that nobody lists.

import dbm.dumb, faulthandler, logging, shelve, sqlite3, tracemalloc, wave, marshal, cProfile

path, found = input["write"], []
for write in (
    lambda: logging.FileHandler(path + ".log").emit(logging.makeLogRecord({"msg": "x"})),
    lambda: sqlite3.connect(path + ".db").execute("create table t (c)"),
    lambda: dbm.dumb.open(path + ".dumb", "c").close(),
    lambda: shelve.open(path + ".shelf").close(),
    lambda: (tracemalloc.start(), tracemalloc.take_snapshot().dump(path + ".trace")),
    lambda: cProfile.Profile().dump_stats(path + ".profile"),
    lambda: wave.open(path + ".wav", "wb"),
    lambda: faulthandler.dump_traceback(open(path + ".fault", "w")),
):
    try:
        found.append(repr(write()))
    except Exception as error:
        found.append(repr(error))
found
