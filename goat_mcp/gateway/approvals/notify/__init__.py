"""Away from the desk: what waits is sent to a program, the desktop, Telegram or Slack. Buttons of these two decide."""
