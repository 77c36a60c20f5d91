"""Run a program in a sealed process: a Program goes in, a value comes out, and nothing else passes in or out.

Five kinds of process take part. This is where each file runs:

    host process   the process that imports gloveport; it never runs agent code
                     pool           keeps started workers ready; each one serves one run
                     worker         one ready guest: its socket, its limits, how it died
                     run_attempt    drives one worker through one program, from the start event to the result
                     exit_reason    why a guest ended; which of its own statements are believed
                     eager          starts the coroutine of a tool call without a turn of the event loop
                     wire           frames and JSON from the guest, decoded under budgets
                     replay         sends recorded events to a fresh worker and compares its frames
                     launcher       starts the fork server (`server_process`) and asks it for guests
                     guest          a guest as the host sees it: socket, limits, kill, wait
                     type_checkers  language servers that check programs; they run in the same jail
                     tasks/         hands hostile text to task processes and reads their answers
                     self_test/     tries to break out of the jail on this machine (`gloveport doctor`)
    fork server    jail/fork_server and what it imports; started by the launcher, with an empty environment
    zygote         jail/zygote and what it imports; runs inside the jail and forks guests that are ready to run
    task process   tasks/guest and the tasks that it runs (tasks/program_task, prepare/), all inside the jail
    guest          the engine: engines/*/guest, engines/javascript and self_test/attempts.js, all inside the jail

    host ──► fork server ──► guest (exec'd: deno, monty)
                        └──► zygote ──► guest (forked: cpython, quickjs) or task process

`engines/` holds, for each engine, how the host launches it and the code that runs in its guests.
"""
