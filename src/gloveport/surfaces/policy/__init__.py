"""The rules as the command line and the HTTP API show, explain and change them.

rule_documents   the rules in force, with the place of each, as JSON documents
explanation      the decision on a call, and what led to it
rule_change      a change of the rules in a settings file: first shown, then made
rules_text       the `[[rules]]` of a settings file as text, edited so that comments and order stay
"""
