"""`gloveport runs`: lists, shows, resumes, replays and cancels the runs in the store."""
