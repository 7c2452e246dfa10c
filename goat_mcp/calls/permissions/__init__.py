"""Whether a validated call may run: deny > ask > allow > mode."""
