"""One run, from the request to the outcome: its attempts, its waiting, its record, and how it goes on later."""
