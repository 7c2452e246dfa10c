"""Work on data that a caller chose, done in a process of its own, which is ended when it overruns."""
