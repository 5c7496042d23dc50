# Variant: a child process answers; its parent waits for it and ends with its exit code.
import os
import sys

import batch_base

child = os.fork()
if child == 0:
    batch_base.serve("ok-forked")
    sys.exit(0)
os.close(0)
os.close(1)
sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
