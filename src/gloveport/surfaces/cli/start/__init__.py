"""The first steps: the page that `gloveport` shows in a terminal, `gloveport init` and `gloveport completion`."""
