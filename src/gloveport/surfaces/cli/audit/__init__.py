"""`gloveport audit`.

group        the commands, their arguments and help texts
command      shows, verifies and exports what hosts have recorded in the store
"""
