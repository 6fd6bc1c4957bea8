# SPDX-License-Identifier: BSD-2-Clause
"""Between `lab run` and `lab serve`: hands on the frames of their control connection until a chosen
one, and then does a chosen harm. The baseline's connection, the second one, passes as it is.
"""

import selectors
import socket
import struct
import threading

GREETING_BYTES = 48
FROM_RUN, FROM_SERVE = 0, 1


class Proxy:
    """harm(frame) is called instead of handing on frame `index` of `direction`; it gives the bytes
    that go on in its place, None to close both connections, or b"" for silence from now on.
    """

    def __init__(self, serve_port, direction=None, index=None, harm=None):
        self.serve_port = serve_port
        self.at = (direction, index)
        self.harm = harm
        self.counts = [0, 0]
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        self.thread = threading.Thread(target=self.work, daemon=True)
        self.end = socket.socketpair()
        self.failure = None  # what went wrong in the thread; told when the `with` block is left

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.end[0].close()
        self.thread.join(10)
        for s in (self.listener, self.end[1]):
            s.close()
        if self.failure is not None:
            raise self.failure

    def work(self):
        self.links = {}  # socket: the other one, direction, bytes not handed on yet
        try:
            self.hand_on()
        except Exception as failure:
            self.failure = failure
            self.close_all()

    def hand_on(self):
        self.select = selectors.DefaultSelector()
        self.select.register(self.listener, selectors.EVENT_READ)
        self.select.register(self.end[1], selectors.EVENT_READ)
        self.control = None
        self.silent = False
        while True:
            for key, _ in self.select.select(1):
                if key.fileobj is self.end[1]:
                    self.close_all()
                    return
                if key.fileobj is self.listener:
                    self.open()
                elif key.fileobj in self.links:
                    self.take(key.fileobj)

    def open(self):
        run, _ = self.listener.accept()
        try:
            serve = socket.create_connection(("127.0.0.1", self.serve_port), 10)
        except OSError:
            run.close()  # serve has ended: as without a proxy, run hears that nobody is there
            return
        if self.control is None:
            self.control = (run, serve)
        for mine, other, direction in ((run, serve, FROM_RUN), (serve, run, FROM_SERVE)):
            mine.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self.links[mine] = [other, direction, b""]
            self.select.register(mine, selectors.EVENT_READ)

    def take(self, mine):
        other, direction, kept = self.links[mine]
        try:
            data = mine.recv(1 << 16)
        except ConnectionError:
            data = b""
        if self.silent:
            if not data:
                self.select.unregister(mine)  # the other one is not told
                del self.links[mine]
            return
        if not data:
            self.close(mine)
        elif mine not in self.control:
            self.pass_on(other, data)
        else:
            self.links[mine][2] = kept + data
            self.frames(mine, other, direction)

    def frames(self, mine, other, direction):
        while mine in self.links and not self.silent:
            kept = self.links[mine][2]
            bytes_of = GREETING_BYTES
            if self.counts[direction] > 0:
                if len(kept) < 4:
                    return
                bytes_of = 4 + struct.unpack(">I", kept[:4])[0]
            if len(kept) < bytes_of:
                return
            frame, self.links[mine][2] = kept[:bytes_of], kept[bytes_of:]
            index = self.counts[direction]
            self.counts[direction] += 1
            if self.at == (direction, index):
                frame = self.harm(frame)
            if frame is None:
                self.close_all()
            elif frame == b"":
                self.silent = True
            else:
                self.pass_on(other, frame)

    def pass_on(self, other, data):
        try:
            other.sendall(data)
        except OSError:
            pass  # it has ended; its own end will be read

    def close(self, mine):
        other = self.links[mine][0]
        for s in (mine, other):
            if s in self.links:
                self.select.unregister(s)
                del self.links[s]
        mine.close()
        other.close()

    def close_all(self):
        for s in list(self.links):
            if s in self.links:
                self.close(s)
