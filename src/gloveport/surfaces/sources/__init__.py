"""The configured sources as the command line and the HTTP API show, add, remove and sign in to them.

source_rows      each source with its state, its problem, and its credentials without their values
credential_rows  what is known about the credentials of a source
addition         adds a source: detected, opened, shown, then written to a settings file
removal          takes a source out of a settings file
sign_in          signs in to the account of a source by OAuth
"""
