"""`gloveport approvals`: a person answers calls that wait, of any host on the store.

group       the commands, their arguments and help texts
command     what they do
shown       how a request is shown: everything that it would do, with hostile text made visible
"""
