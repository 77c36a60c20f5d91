"""`gloveport snippets`: programs of runs that worked, saved under a name and called as tools."""
