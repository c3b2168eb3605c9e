"""The bytes of a table: shim/table/layout.h, which is an ABI."""

import mmap
import struct

HEADER_SIZE, SLOT_SIZE, CAPACITY = 4096, 512, 1024
TABLE_FULL, WORD, OPENED, LAST_FAILURE_NS, LAST_FAILURE = 128, 8, 64, 72, 80
PARKED_UNTIL, COOLDOWN, RATE = 16, 88, 256
STATS, STATS_SHARD, KEY_CHECKSUM, KEY_TEXT = 128, 64, 320, 328
REROUTED, TO = 32, 40  # of a shard of the statistics


class Table:
    """The bytes of a table, for states that the command alone cannot bring about."""

    def __init__(self, path):
        with open(path, "r+b") as file:
            self.map = mmap.mmap(file.fileno(), 0)

    def slots(self):
        for i in range(CAPACITY):
            at = HEADER_SIZE + i * SLOT_SIZE
            if struct.unpack_from("<Q", self.map, at)[0]:
                yield at

    def only_slot(self):
        (at,) = self.slots()
        return at

    def key(self, slot):
        length = struct.unpack_from("<H", self.map, slot + KEY_CHECKSUM + 4)[0]
        return self.map[slot + KEY_TEXT:slot + KEY_TEXT + length].decode()

    def put(self, form, at, *values):
        struct.pack_into(form, self.map, at, *values)

    def get(self, form, at):
        return struct.unpack_from(form, self.map, at)[0]
