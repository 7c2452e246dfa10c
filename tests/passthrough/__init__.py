"""What passes a gateway: one server with one of everything, one check for each row, for each pair of protocol eras."""
