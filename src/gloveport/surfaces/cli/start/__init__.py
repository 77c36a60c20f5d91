"""First steps: the page that `gloveport` shows in a terminal, `init`, `completion`, and what `doctor` sees around it."""
