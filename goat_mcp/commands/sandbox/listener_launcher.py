"""Inside a sandbox with a network of its own: makes the socket on which the proxy outside listens, then becomes the
program. Started by `launcher`; its arguments are a descriptor, a port, and the program.

A socket belongs to the network in which it was made, whoever accepts its connections. So no process of ours has to stay
inside to forward bytes, and no Unix socket leads out.
"""

from __future__ import annotations

import _socket as socket  # the public module costs 8 ms of every start
import sys

from goat_mcp.commands.sandbox.exec_command import CANNOT_CONFINE, environment_as_given, exec_command, exit_with

_BACKLOG = 128


def main(arguments: list[str]) -> None:
    descriptor, port, *command = arguments
    environment = environment_as_given()
    try:
        listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        listener.bind(("127.0.0.1", int(port)))
        listener.listen(_BACKLOG)
        channel = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM, 0, int(descriptor))
        sent = listener.fileno().to_bytes(4, sys.byteorder)
        channel.sendmsg([b"l"], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, sent)])
        channel.close()
        listener.close()
    except OSError as problem:
        exit_with(CANNOT_CONFINE, f"the way to the network could not be opened, so nothing ran: {problem}")
    exec_command(command, environment)
