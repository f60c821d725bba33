"""One library in a process of its own. It reads a JSON request a line from standard input and writes an answer a line.

| request | answer |
|---|---|
| `{"open": NAME, "scale": S, "gpu": BOOL}` | `{"ready": true, ...}` or `{"missing": TEXT}` |
| `{"prepare": KEY}` | `{"first_s": T}`, time of the first turn, or `{"missing": TEXT}` |
| `{"block": TURNS, "in_a_row": N, "seconds": S}` | `{"times": [...]}`, seconds of each turn, of one of N operations |
| `{"sample": COUNT}` | `{"values": [...]}`, at most COUNT elements of the last result |
| `{"release": true}` | `{}` |

A library that writes to standard output would break the protocol, so descriptor 1 is standard error."""

import gc
import json
import os
import sys
import time

import numpy as np

from bench.peers import libraries, workloads
from bench.peers.sizes import Sizes

_ROWS = {row.key: row for row in workloads.ROWS}


class Turn:
    """A workload on a library's arrays."""

    def __init__(self, library, workload, sizes):
        self.library, self.workload = library, workload
        self.function = library.compiled(workload.function)
        inputs = workload.inputs(sizes)
        self.moved = int(workload.moved(*inputs))
        kept = workload.to_host
        self.arrays = [one if kept or not isinstance(one, np.ndarray) else library.put(one) for one in inputs]
        self.result = None

    def __call__(self, in_a_row=1):
        library, workload = self.library, self.workload
        self.result = None  # the last turn's memory is free for this turn
        begin = time.perf_counter()
        if workload.to_host:
            self.result = library.get(self.function(*(library.put(one) for one in self.arrays)))
        elif workload.number:
            self.result = float(library.get(self.function(*self.arrays)))
        else:
            # All results are held, so that every library computes all of them.
            results = [self.function(*self.arrays) for _ in range(in_a_row)]
            library.sync(results)
            self.result = results[-1]
        return (time.perf_counter() - begin) / in_a_row

    def sample(self, count):
        result = self.result[-1] if isinstance(self.result, (list, tuple)) else self.result
        host = np.asarray(
            result if self.workload.to_host or self.workload.number else self.library.get(result)
        ).reshape(-1)
        host = host[:: max(1, host.size // count)][:count]
        parts = [host.real, host.imag] if host.dtype.kind == "c" else [host]
        return [float(one) for part in parts for one in part]


class Process:
    def __init__(self):
        self.library = self.sizes = self.turn = None

    def open(self, request):
        try:
            self.library = libraries.open_library(request["open"])
        except Exception as error:  # not installed, or without a device that it needs
            return {"missing": _text(error)}
        answer = {"ready": True, "queues": self.library.queues}
        if hasattr(self.library, "device"):
            answer["device"], answer["models"] = self.library.device()
        return answer

    def prepare(self, request):
        self.release(request)
        try:
            sizes = Sizes(request["scale"], request["gpu"])
            self.turn = Turn(self.library, _ROWS[request["prepare"]], sizes)
            return {"first_s": self.turn(), "moved": self.turn.moved}
        except Exception as error:
            self.release(request)
            return {"missing": _text(error)}

    def block(self, request):
        times, end = [], time.perf_counter() + request["seconds"]
        count = request["in_a_row"]
        self.turn(count)  # finds caches and clocks as the library before left them
        while not times or len(times) < request["block"] and time.perf_counter() < end:
            times.append(self.turn(count))
        return {"times": times}

    def sample(self, request):
        return {"values": self.turn.sample(request["sample"])}

    def release(self, request):
        self.turn = None
        gc.collect()
        self.library.trim()
        return {}


def _text(error):
    return (str(error).splitlines() or [type(error).__name__])[0][:120] or type(error).__name__


def main():
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    process = Process()
    for line in sys.stdin:
        request = json.loads(line)
        print(json.dumps(getattr(process, next(iter(request)))(request)), file=answers, flush=True)


if __name__ == "__main__":
    main()
