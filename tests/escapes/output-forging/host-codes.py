# Tries: an error with a code that only the host may give, so that a program's own failure looks like a limit or a crash.
# Origin: own idea: callers retry, bill or alarm by code.

raise ToolError("the run took longer than 60 s", code="time-limit", hint="raise the limit")
