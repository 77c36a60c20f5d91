# Tries: another interpreter in the same process, with fresh modules that nobody has prepared.
# Origin: PEP 554; a fresh realm, as JavaScript's are.

try:
    import _interpreters as interpreters
except ImportError:
    import _xxsubinterpreters as interpreters
made = interpreters.create()
interpreters.run_string(made, f"open({input['write']!r}, 'w').write('written')")
