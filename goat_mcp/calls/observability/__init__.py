"""What operators watch of calls: metrics and traces. Unless settings ask for them, their libraries are not loaded."""
