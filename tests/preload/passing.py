"""Time that passes, for tests of time itself: nothing happens that could be waited for instead."""

import inspect
import time


def let_pass(seconds):
    time.sleep(max(0, seconds))


LET_PASS = "import time\n" + inspect.getsource(let_pass)  # for programs that have it in their text
