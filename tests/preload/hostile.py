"""Tables that no process should meet, and worlds to meet them in: each a Case of test_hostile_files.py."""

import dataclasses
import os
import random
import socket
import struct
import subprocess
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "cli"))
import table_layout as layout  # noqa: E402  where the command's tests have it

STRANGER = 65534
SIZE = layout.HEADER_SIZE + layout.CAPACITY * layout.SLOT_SIZE
# The header: shim/table/layout.h.
MAGIC, LAYOUT, CAPACITY, FINGERPRINT, SEED, BOOT_ID = 0, 8, 12, 16, 24, 32

# What becomes of the calls' outcomes.
SHARED, ALONE, PASSED = "one table for all", "each process for itself", "nobody counts"


@dataclasses.dataclass
class Case:
    name: str
    make: callable  # make(TABLE): puts it there
    counted: str = PASSED
    status: tuple = (1, "refused")  # exit code of `breaker status`, and what its stderr says
    check: str | None = "refused"  # what `breaker check` says; None: that all is well
    fsize: int | None = None  # RLIMIT_FSIZE of all that runs
    world: callable = None  # world(TABLE): the command that all runs under


def only_root(what):
    if os.geteuid() != 0:
        pytest.skip(f"needs root: {what}")


def valid(table, change=None):
    """A table as we make it, its breakers all closed; then `change(BYTES)`."""
    program = Path(os.environ.get("BREAKER_BUILD", Path(__file__).parents[2] / "build")) / "breaker"
    environment = {"BREAKER_TABLE": str(table), "PATH": os.environ["PATH"]}
    subprocess.run([program, "force", "open", "--create", "elsewhere.example"], env=environment, check=True,
                   capture_output=True, timeout=30)
    data = bytearray(table.read_bytes())
    if change:
        change(data)
        table.write_bytes(data)


def header(at, form, value):
    def change(data):
        struct.pack_into(form, data, at, value)

    return lambda table: valid(table, change)


def filled(data, mode=0o600):
    def make(table):
        table.write_bytes(data)
        table.chmod(mode)

    return make


def give_away(table, owner=STRANGER):
    only_root("gives a file away")
    os.chown(table, owner, owner)


def mode(bits, owner=None):
    def make(table):
        valid(table)
        table.chmod(bits)
        if owner is not None:
            give_away(table, owner)

    return make


def link_to(target):
    def make(table):
        if target == "good":
            other = table.with_name("elsewhere")
            valid(other)
            table.symlink_to(other)
        else:
            table.symlink_to(target)

    return make


def a_socket(table):
    with socket.socket(socket.AF_UNIX) as end:
        end.bind(str(table))


def a_linked_directory(table):
    elsewhere = table.parent.with_name("elsewhere")
    table.parent.rename(elsewhere)
    table.parent.symlink_to(elsewhere)


def in_place_of_the_directory(table):
    table.parent.rmdir()
    table.parent.write_bytes(b"")


def too_deep(table):
    table.parent.rmdir()  # and only the last directory is ever made
    table.parent.symlink_to(table.parent.with_name("nothing") / "below")


def another_boot(table):
    valid(table, lambda data: struct.pack_into("<36s", data, BOOT_ID, b"0" * 36))


def tmpfs(options):
    """On the table's directory, in a mount namespace of its own that ends with the program."""
    def command(table):
        only_root("mounts")
        return ["unshare", "--mount", "sh", "-c", f'mount -t tmpfs -o {options} tmpfs "$0" && exec "$@"', str(table.parent)]

    return command


NOISE = random.Random(7).randbytes(SIZE)
FORMAT = {"status": (1, "not a table of this layout"), "check": "not a table of this layout"}
NO_WAY = {"counted": ALONE, "status": (1, "directory cannot be made"), "check": "no such directory"}
NOTHING = (0, "no table at")

CASES = [
    Case("wrong magic", header(MAGIC, "<Q", 0), **FORMAT),
    Case("wrong layout", header(LAYOUT, "<I", 2), **FORMAT),
    Case("wrong capacity", header(CAPACITY, "<I", 1 << 31), **FORMAT),
    Case("wrong fingerprint", header(FINGERPRINT, "<Q", 1), **FORMAT),
    Case("zeros", filled(bytes(SIZE)), **FORMAT),
    Case("all ones", filled(b"\xff" * SIZE), **FORMAT),
    Case("random bytes", filled(NOISE), **FORMAT),
    Case("empty", filled(b"")),
    Case("short", filled(NOISE[:100])),
    Case("a byte short", filled(NOISE[1:])),
    Case("a byte long", filled(NOISE + b"\0")),
    Case("symlink to a good one", link_to("good")),
    Case("symlink to nothing", link_to("/nonexistent/table")),
    Case("symlink to itself", link_to("table")),
    Case("fifo", lambda table: os.mkfifo(table, 0o600)),
    Case("directory", lambda table: table.mkdir(mode=0o700)),
    Case("socket", a_socket),
    Case("open to all", mode(0o666)),
    Case("a stranger's", mode(0o600, STRANGER)),
    Case("a stranger's, open to all", mode(0o666, STRANGER)),
    Case("linked directory", a_linked_directory, SHARED, NOTHING, None),  # whoever names a path may link it
    Case("no directory", in_place_of_the_directory, ALONE, (1, "directory"), "directory"),
    Case("nowhere", too_deep, ALONE, NOTHING, "no such directory"),
    Case("full tmpfs", lambda table: None, ALONE, NOTHING, "no space", world=tmpfs("size=64k")),
    Case("read-only file system", lambda table: None, ALONE, NOTHING, "Read-only file system", world=tmpfs("ro")),
    Case("no room for a file", lambda table: None, ALONE, NOTHING, "file size limit", fsize=0),
    Case("no room for a file, but there is one", valid, SHARED, (0, ""), None, fsize=0),
    Case("another boot", another_boot, SHARED, NOTHING, None),
    Case("another boot, no room for a file", another_boot, ALONE, NOTHING, "file size limit", fsize=0),
]


class Shm:
    """Commands that see a /dev/shm of their own, which lasts as long as this; `inside` them: its path from outside."""

    def __init__(self, mount):
        only_root("mounts, and runs as others")
        self.keeper = subprocess.Popen(["unshare", "--mount", "sh", "-c", f"{mount} && echo ready && exec cat"],
                                       stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        if self.keeper.stdout.readline() != "ready\n":
            pytest.skip("no mount namespace with a /dev/shm of its own: " + self.keeper.communicate()[1].strip())
        self.inside = Path(f"/proc/{self.keeper.pid}/root/dev/shm")

    def command(self, uid=None):
        """Inside, as that user."""
        words = ["nsenter", "--target", str(self.keeper.pid), "--mount"]
        return words if uid is None else [*words, "setpriv", f"--reuid={uid}", f"--regid={uid}", "--clear-groups"]

    def end(self):
        self.keeper.communicate()
