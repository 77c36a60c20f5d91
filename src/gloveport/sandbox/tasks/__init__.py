"""Tasks: functions of ours that read hostile text, run in jailed processes that are killed when they take too long.

    launch         how a zygote is started that has the modules of some tasks loaded
    pool           hands a task to a process: a fresh one, or one that serves a single agent
    task_process   one process: sends it a task, answers its questions, reads what it yields, ends it over its budget
    result_cache   what a process has returned before; it lasts as long as the process
    program_task   in the process: prepares and checks programs
    guest/         in the process: reads requests and runs tasks

A task is a pure function `function(parts, ask)` that yields bytes; `ask(question)` returns the host's answer. The process
has no file, network, environment or credential. Hostile text may take it over, so the host treats what it returns as
hostile too, and no process reads the texts of two agents, or two definitions. What it returned counts for the same text
of the same agent again, until the process is replaced.
"""
