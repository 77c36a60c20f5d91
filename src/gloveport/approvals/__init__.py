"""Approvals: a person answers what the rules ask about.

    request     what is asked, what was answered, and which later calls a standing approval covers
    desk        the waiting requests of this host and their answers; the standing approvals
    shelf       the requests of all hosts in the store, where other processes answer them
    shelf_link  connects the desk of a host to the shelf

An approval is bound to one run, one call and a digest of the tool and its arguments. It is used once and expires. Only an
approver answers: a person at a terminal, the code that owns the port, or a token of an approver. No agent is one.
"""
