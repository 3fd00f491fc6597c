"""A fast fuzzer: many mutated inputs to one decoder, the same ones in every run.

``ICEFLOE_FUZZ`` is the number of inputs of each decoder; the default is small, for every run of the tests. A decoder
may read an input or refuse it with a typed error. Anything else is a failure, and so are inputs that take very long or
fill the memory: an input of a few kilobytes has no business doing either.
"""

from __future__ import annotations

import os
import random
import resource
import time
from collections import Counter
from collections.abc import Callable, Sequence

from icefloe.errors import FormatError, UnsupportedError

INPUTS = int(os.environ.get("ICEFLOE_FUZZ", "400"))
LONGEST_SECONDS = 20.0
MOST_MEMORY_KB = 1_500_000  # that one decoder's inputs may add to the process
MOST_CHANGES = 4
INTERESTING = (
    b"\x00",
    b"\x01",
    b"\x02",
    b"\x7f",
    b"\x80",
    b"\xff",
    b"\xff" * 4,
    b"\xff" * 8,
    b"\x00" * 8,
    b"\xff\xff\xff\x7f",
    b"\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01",
    b"\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80",
    b"\xfe\xff\xff\xff\x0f",
)

Mutate = Callable[[bytes, random.Random], bytes]


def mutated(seed: bytes, chance: random.Random) -> bytes:
    """The bytes with a few changes."""
    data = bytearray(seed)
    for _ in range(chance.randint(1, MOST_CHANGES)):
        if len(data) == 0:
            break
        at = chance.randrange(len(data))
        match chance.randrange(8):
            case 0:
                data[at] ^= 1 << chance.randrange(8)
            case 1:
                data[at] = chance.randrange(256)
            case 2 | 3:
                piece = chance.choice(INTERESTING)
                data[at : at + len(piece)] = piece
            case 4:
                data[at:at] = chance.choice(INTERESTING)
            case 5:
                del data[at : at + chance.randint(1, 16)]
            case 6:
                start = chance.randrange(len(data))
                data[at:at] = data[start : start + chance.randint(1, 64)]
            case _ if chance.randrange(4) == 0:
                del data[at:]
            case _:
                data[at] = (data[at] + chance.choice((1, 255))) % 256
    return bytes(data)


def fuzz(
    seeds: Sequence[bytes],
    decode: Callable[[bytes], object],
    *,
    mutate: Mutate = mutated,
    wrap: Callable[[bytes], bytes] = bytes,
    inputs: int = INPUTS,
) -> Counter[str]:
    """Feed mutated seeds, each put into its frame by ``wrap``; how often each outcome was seen."""
    outcomes: Counter[str] = Counter()
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for number in range(inputs):
        data = wrap(mutate(seeds[number % len(seeds)], random.Random(number)))
        start = time.process_time()  # of CPU: a process that was made to wait is no slow decoder
        try:
            decode(data)
            outcomes["read"] += 1
        except (FormatError, UnsupportedError) as error:
            outcomes[type(error).__name__] += 1
        except BaseException as error:
            raise AssertionError(f"input {number}: {type(error).__name__}: {error}\n{data.hex()}") from error
        if (taken := time.process_time() - start) > LONGEST_SECONDS:
            raise AssertionError(f"input {number} took {taken:.1f} s\n{data.hex()}")
    added = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    assert added < MOST_MEMORY_KB, f"memory grew by {added} kB"
    return outcomes
