"""What the network tools need beside a connection: searching, and (as it is built) pages turned into text."""
