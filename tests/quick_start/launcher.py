"""Has the fork server run a Python module or file, and exits as that does: launcher.py SOCKET (-m MODULE | FILE) WORDS.

It is started for each process of the tests: it imports next to nothing.
"""

import os
import signal
import sys
from _socket import SCM_RIGHTS, SOL_SOCKET, socket  # `socket` itself imports for ten milliseconds

AF_UNIX = 1
ENDED_UNSEEN = 70


def main() -> None:
    server = socket(AF_UNIX)
    server.connect(sys.argv[1])
    folder = os.open(".", getattr(os, "O_PATH", os.O_RDONLY))
    request = repr((sys.argv[2:], dict(os.environ), _umask())).encode("utf-8", "surrogateescape")
    descriptors = b"".join(number.to_bytes(4, sys.byteorder) for number in (0, 1, 2, folder))
    server.sendmsg([len(request).to_bytes(8, "big")], [(SOL_SOCKET, SCM_RIGHTS, descriptors)])
    server.sendall(request)

    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2):
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, lambda number, _: server.sendall(bytes([number])))
    # Whoever reads or writes to the streams deals with the forked process alone.
    os.closerange(0, 3)

    answer = server.recv(4)
    if not answer:
        os._exit(ENDED_UNSEEN)
    code = int.from_bytes(answer, "big", signed=True)
    if code < 0:  # a signal ended it
        signal.signal(-code, signal.SIG_DFL)
        os.kill(os.getpid(), -code)
    os._exit(code)


def _umask() -> int:
    umask = os.umask(0o77)
    os.umask(umask)
    return umask


main()
