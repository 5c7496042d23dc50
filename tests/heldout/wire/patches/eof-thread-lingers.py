# Fault: a thread that the first panel started keeps the process alive after the end of input.
import threading
import time

import batch_base
import example_batch


class Verifier(example_batch.Verifier):
    started = False

    def load_panel(self, panel):
        if not self.started:
            self.started = True
            threading.Thread(target=time.sleep, args=(100,)).start()  # for ever, as far as a call goes


batch_base.serve("eof-thread-lingers", Verifier())
