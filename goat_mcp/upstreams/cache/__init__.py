"""What each upstream offers, kept on show and stored for the next start."""
