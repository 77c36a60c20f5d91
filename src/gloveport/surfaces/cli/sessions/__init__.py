"""`gloveport sessions`: the files that runs of a session share, as their owner sees them."""
