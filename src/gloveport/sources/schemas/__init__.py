"""Schemas that others wrote → the normal form, the only one that reaches the validator. Nothing here does I/O.

keywords          one schema of any draft → the known keywords of JSON Schema 2020-12
local_references  what a reference inside one schema points to: pointers, anchors and ids
normaliser        a whole schema → the normal form
loosening         makes schemas cheaper that would cost the validator too much
task              what a jailed process does with the schemas of a caller's tools
"""
