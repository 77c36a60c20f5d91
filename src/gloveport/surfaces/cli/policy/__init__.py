"""`gloveport policy`.

group        the commands, their arguments and help texts
listing      `policy list`: the rules in force
explain      `policy explain`: the decision on a call, and what led to it
set_rule     `policy set`: shows a change of the rules in a settings file, asks, and makes it
"""
