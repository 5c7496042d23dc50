# Variant: one thread reads frames ahead in pieces of 4,096 bytes, another computes, a third one writes.
import queue
import threading

import assay_iut
import batch_base


class Pieces:
    """A file that is read in small pieces."""

    def __init__(self, source):
        self.source = source

    def read(self, size):
        data = bytearray()
        while len(data) < size:
            piece = self.source.read(min(4096, size - len(data)))
            if not piece:
                break
            data += piece
        return bytes(data)


class Frames(assay_iut.Frames):
    def __init__(self, source, sink):
        super().__init__(Pieces(source), sink)
        self.requests, self.replies = queue.Queue(), queue.Queue()
        threading.Thread(target=self.read_all).start()
        threading.Thread(target=self.write_all, daemon=True).start()

    def read_all(self):
        request = True
        while request is not None:
            request = super().read()
            self.requests.put(request)

    def write_all(self):
        while True:
            super().write(*self.replies.get())
            self.replies.task_done()

    def read(self):
        request = self.requests.get()
        if request is None:
            self.replies.join()
        return request

    def write(self, header, tensors=()):
        self.replies.put((header, tensors))


assay_iut.Frames = Frames
batch_base.serve("ok-reader-thread")
