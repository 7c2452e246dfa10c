"""What the server keeps: one state directory on disk, and short-lived state of sessions in memory."""
