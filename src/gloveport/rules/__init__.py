"""Rules: which calls are allowed, asked about or denied, and how many may be made.

conditions      `when` of a rule: an expression over the arguments, compiled when the rules are loaded
rules           the rules of a port, the decision on a call, and its explanation
budgets         how many calls an agent may make: in a run, in an hour, at the same time
tables          a `[[rules]]` table as a rule or a budget
source_writes   `writes = …` of a source, the short form for rules that allow
"""
