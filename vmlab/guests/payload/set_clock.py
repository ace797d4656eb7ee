"""Tells this guest's wall clock, and steps it, for a guest without the lab's agent: a line of JSON in, one out."""

import json
import sys
import time

for line in sys.stdin:
    order = json.loads(line)
    if "step" in order:
        time.clock_settime_ns(time.CLOCK_REALTIME, time.time_ns() + order["step"])
    sys.stdout.write(json.dumps({"clock": time.time()}) + "\n")
    sys.stdout.flush()
