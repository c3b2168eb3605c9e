"""client_remote.py [LIBCURL]: libcurl by ctypes, told by JSON lines on stdin what to do; one line answers each.

{"do": NAME, ...}: the methods of Remote below. Bytes travel as latin-1 text, or as {"file": PATH}. Handles have names;
what is set on one stays until it is reset, so that the same handle can be performed again without being told anything.
"""

import ctypes
import hashlib
import json
import os
import select
import sys
import threading

LONG, VALUES, OFF_T, OBJECT, STRING, SLIST, CBPTR, BLOB, FUNCTION = range(9)
INFOS = {"status": (0x200002, ctypes.c_long), "url": (0x100001, ctypes.c_char_p), "connects": (0x20001A, ctypes.c_long),
         "redirects": (0x200014, ctypes.c_long), "primary_ip": (0x100020, ctypes.c_char_p),
         "primary_port": (0x200028, ctypes.c_long), "type": (0x100012, ctypes.c_char_p)}
CURL_SOCKET_TIMEOUT = -1
SEEK_OK, SEEK_CANNOT = 0, 2

DATA = ctypes.CFUNCTYPE(ctypes.c_size_t, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_size_t, ctypes.c_void_p)
SEEK = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int)
OPENED = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_int, ctypes.c_void_p)
SOCKET = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_int, ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p)
TLS = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p)
TIMER = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_long, ctypes.c_void_p)


class Option(ctypes.Structure):
    _fields_ = [("name", ctypes.c_char_p), ("id", ctypes.c_int), ("type", ctypes.c_int), ("flags", ctypes.c_uint)]


class Item(ctypes.Structure):
    pass


Item._fields_ = [("data", ctypes.c_char_p), ("next", ctypes.POINTER(Item))]


class Blob(ctypes.Structure):
    _fields_ = [("data", ctypes.c_void_p), ("len", ctypes.c_size_t), ("flags", ctypes.c_uint)]


class Message(ctypes.Structure):
    _fields_ = [("msg", ctypes.c_int), ("easy", ctypes.c_void_p), ("result", ctypes.c_int)]


class Address(ctypes.Structure):
    _fields_ = [("family", ctypes.c_int), ("kind", ctypes.c_int), ("protocol", ctypes.c_int),
                ("length", ctypes.c_uint), ("bytes", ctypes.c_ubyte * 128)]


def bytes_of(value):
    if isinstance(value, dict):
        with open(value["file"], "rb") as file:
            return file.read()
    return value.encode("latin-1")


class Library:
    def __init__(self, path):
        self.dll = ctypes.CDLL(path)
        self.dll.curl_easy_option_by_name.restype = ctypes.POINTER(Option)
        for name in ("curl_easy_init", "curl_easy_duphandle", "curl_multi_init", "curl_mime_init", "curl_mime_addpart",
                     "curl_slist_append"):
            getattr(self.dll, name).restype = ctypes.c_void_p
        self.dll.curl_multi_info_read.restype = ctypes.POINTER(Message)

    def __getattr__(self, name):
        return getattr(self.dll, "curl_" + name)

    def option(self, name):
        found = self.easy_option_by_name(name.encode())
        assert found, f"no option {name}"
        return found.contents


class Easy:
    def __init__(self, curl, handle=None):
        self.curl, self.handle = curl, ctypes.c_void_p(handle or curl.easy_init())
        assert self.handle
        self.kept, self.buffer, self.lists = [], None, {}
        self.source = None  # of read callbacks: [bytes, position]
        self.opened, self.in_write, self.copy, self.sought = [], None, None, 0
        self.told = []  # what read callbacks answer in place of bytes, call by call; None: bytes
        self.later, self.rewinds = None, True  # what they give after a seek to their beginning; whether it is done
        self.cleared()

    def cleared(self):
        """The callbacks that every handle of ours has."""
        self.received, self.head = b"", b""
        self.writes, self.heads, self.opens = DATA(self.on_write), DATA(self.on_header), OPENED(self.on_open)
        for name, value in (("WRITEFUNCTION", self.writes), ("HEADERFUNCTION", self.heads),
                            ("OPENSOCKETFUNCTION", self.opens)):
            self.put(name, value)
        self.put("NOSIGNAL", ctypes.c_long(1))
        self.put("TIMEOUT", ctypes.c_long(20))

    def put(self, name, value):
        code = self.curl.easy_setopt(self.handle, ctypes.c_int(self.curl.option(name).id), value)
        assert code == 0, (name, code)

    def set(self, name, value):
        kind = self.curl.option(name).type
        if kind in (LONG, VALUES):
            value = ctypes.c_long(value)
        elif kind == OFF_T:
            value = ctypes.c_int64(value)
        elif kind == SLIST:
            value = self.slist(name, value)
        elif kind == BLOB:
            data = bytes_of(value)
            holder = ctypes.create_string_buffer(data, len(data))
            value = Blob(ctypes.cast(holder, ctypes.c_void_p), len(data), 1)
            self.kept += [holder, value]
            value = ctypes.byref(value)
        elif value is None:
            value = ctypes.c_void_p()
        else:
            data = bytes_of(value)
            value = ctypes.create_string_buffer(data)
            if name == "POSTFIELDS":
                self.buffer = value
            elif name == "COPYPOSTFIELDS":
                self.put(name, value)
                ctypes.memset(value, 0x78, len(data))  # libcurl has its own
                return
            self.kept.append(value)
        self.put(name, value)

    def slist(self, name, lines):
        head = ctypes.c_void_p()
        for line in lines or []:
            head = ctypes.c_void_p(self.curl.slist_append(head, ctypes.c_char_p(line.encode("latin-1"))))
        self.lists[name] = head
        return head

    # --- bodies ----------------------------------------------------------------------------------

    def source_of(self, body, seek, sized, way, piece):
        self.source, self.piece, self.sought = [bytes_of(body), 0], piece, 0
        self.reads, self.seeks = DATA(self.on_read), SEEK(self.on_seek)
        self.put("READFUNCTION", self.reads)
        if seek:
            self.put("SEEKFUNCTION", self.seeks)
        self.put("UPLOAD" if way == "UPLOAD" else "POST", ctypes.c_long(1))
        if way == "UPLOAD":
            self.set("CUSTOMREQUEST", "POST")
        self.set("INFILESIZE_LARGE" if way == "UPLOAD" else "POSTFIELDSIZE_LARGE", len(self.source[0]) if sized else -1)

    def on_read(self, buffer, size, number, _):
        told = self.told.pop(0) if self.told else None
        if told is not None:
            return told
        data, at = self.source
        part = data[at:at + min(size * number, self.piece)]
        ctypes.memmove(buffer, part, len(part))
        self.source[1] += len(part)
        return len(part)

    def on_seek(self, _, offset, origin):
        if origin != os.SEEK_SET or not self.rewinds:
            return SEEK_CANNOT
        self.source[1] = offset
        self.sought += 1
        if self.later is not None and offset == 0:
            self.source[0] = self.later
        return SEEK_OK

    def mime_of(self, parts):
        mime = ctypes.c_void_p(self.curl.mime_init(self.handle))
        for name, data, filename in parts:
            part, data = ctypes.c_void_p(self.curl.mime_addpart(mime)), data.encode("latin-1")
            self.curl.mime_name(part, name.encode())
            self.curl.mime_data(part, data, ctypes.c_size_t(len(data)))
            if filename:
                self.curl.mime_filename(part, filename.encode())
        self.form = mime
        self.put("MIMEPOST", mime)

    def form_of(self, fields):
        first, last = ctypes.c_void_p(), ctypes.c_void_p()
        for name, content in fields:
            assert self.curl.formadd(ctypes.byref(first), ctypes.byref(last), 1, name.encode(), 4, content.encode(), 17) == 0
        self.put("HTTPPOST", first)

    # --- callbacks -------------------------------------------------------------------------------

    def on_write(self, data, size, number, _):
        self.received += ctypes.string_at(data, size * number)
        if self.in_write is not None:
            options, self.in_write = self.in_write, None
            for name, value in options.items():
                if name == "duplicate":
                    self.copy = Easy(self.curl, self.curl.easy_duphandle(self.handle))
                elif name == "mime":
                    self.mime_of(value)
                elif name == "form":
                    self.form_of(value)
                else:
                    self.set(name, value)
        return size * number

    def on_header(self, data, size, number, _):
        self.head += ctypes.string_at(data, size * number)
        return size * number

    def on_open(self, _, purpose, address):
        address = ctypes.cast(address, ctypes.POINTER(Address)).contents
        libc = ctypes.CDLL(None, use_errno=True)
        self.opened.append(int.from_bytes(bytes(address.bytes[2:4]), "big"))
        return libc.socket(address.family, address.kind, address.protocol)

    # --- what came of it -------------------------------------------------------------------------

    def begin(self):
        self.received, self.head, self.opened = b"", b"", []

    def result(self, code):
        found = {"code": code, "body": self.received.decode("latin-1"), "head": self.head.decode("latin-1"),
                 "opened": self.opened}
        for name, (number, kind) in INFOS.items():
            value = kind()
            self.curl.easy_getinfo(self.handle, ctypes.c_int(number), ctypes.byref(value))
            found[name] = value.value.decode("latin-1") if isinstance(value.value, bytes) else value.value
        return found


class Remote:
    """What can be asked for; each method's result is the answer."""

    def __init__(self, path):
        self.curl, self.easy, self.multi, self.drop = Library(path), {}, None, None
        self.curl.global_init(ctypes.c_long(3))

    def new(self, name):
        self.easy[name] = Easy(self.curl)

    def set(self, name, options):
        for option, value in options.items():
            self.easy[name].set(option, value)

    def source(self, name, body, seek=False, sized=True, way="POST", piece=1 << 16):
        self.easy[name].source_of(body, seek, sized, way, piece)

    def misread(self, name, told=(), later=None, rewinds=True):
        """For source(): its callback answers so first; its bytes are others when it begins anew, or it does not."""
        self.easy[name].told, self.easy[name].later = list(told), later and bytes_of(later)
        self.easy[name].rewinds = rewinds

    def ssl_ctx(self, name):
        """An application's own callback for its TLS."""
        self.easy[name].tls = TLS(lambda *_: 0)
        self.easy[name].put("SSL_CTX_FUNCTION", self.easy[name].tls)

    def rewind(self, name):
        """As a program does between two calls of its own."""
        self.easy[name].source[1] = 0

    def mime(self, name, parts):
        self.easy[name].mime_of(parts)

    def mime_free(self, name):
        self.curl.mime_free(self.easy[name].form)

    def url_parts(self, name, url):
        self.curl.url.restype = ctypes.c_void_p
        parts = ctypes.c_void_p(self.curl.url())
        assert self.curl.url_set(parts, 0, url.encode(), 0) == 0
        self.easy[name].put("CURLU", parts)

    def in_write(self, name, options):
        self.easy[name].in_write = options

    def perform(self, name, multi=False):
        if multi:
            return self.perform_many([name])[0]
        easy = self.easy[name]
        easy.begin()
        return easy.result(self.curl.easy_perform(easy.handle))

    def once(self, options, multi=False):
        """A handle for one call."""
        self.new("once")
        self.set("once", options)
        result = self.perform("once", multi)
        self.cleanup("once")
        return result

    def threads(self, names):
        results = {}

        def run(name):
            results[name] = self.perform(name)

        running = [threading.Thread(target=run, args=(name,)) for name in names]
        for thread in running:
            thread.start()
        for thread in running:
            thread.join()
        return [results[name] for name in names]

    def fork(self, name):
        """The handle performed in a child; its result."""
        readable, writable = os.pipe()
        child = os.fork()
        if child == 0:
            os.write(writable, json.dumps(self.perform(name)).encode())
            os._exit(0)
        os.close(writable)
        with os.fdopen(readable) as pipe:
            result = json.load(pipe)
        assert os.waitpid(child, 0)[1] == 0
        return result

    def duplicate(self, name, copy):
        self.easy[copy] = Easy(self.curl, self.curl.easy_duphandle(self.easy[name].handle))
        self.easy[copy].kept, self.easy[copy].buffer = self.easy[name].kept, self.easy[name].buffer

    def take_copy(self, name, copy):
        """The duplicate that a write callback made."""
        self.easy[copy], self.easy[name].copy = self.easy[name].copy, None
        self.easy[copy].kept.append(self.easy[name])

    def reset(self, name):
        self.curl.easy_reset(self.easy[name].handle)
        self.easy[name].cleared()

    def cleanup(self, name):
        easy = self.easy.pop(name)
        self.curl.easy_cleanup(easy.handle)
        for head in easy.lists.values():
            self.curl.slist_free_all(head)

    def theirs(self, name):
        """What the application owns: the bytes behind POSTFIELDS, the lines of its lists."""
        easy = self.easy[name]
        lists = {}
        for option, head in easy.lists.items():
            lists[option], item = [], ctypes.cast(head, ctypes.POINTER(Item))
            while item:
                lists[option].append(item.contents.data.decode("latin-1"))
                item = item.contents.next
        body = bytes(easy.buffer)[:-1] if easy.buffer else b""
        return {"lists": lists, "body": hashlib.sha256(body).hexdigest()}

    # --- the multi interface ---------------------------------------------------------------------

    def add(self, name):
        self.multi = self.multi or ctypes.c_void_p(self.curl.multi_init())
        self.easy[name].begin()
        assert self.curl.multi_add_handle(self.multi, self.easy[name].handle) == 0

    def remove(self, name):
        assert self.curl.multi_remove_handle(self.multi, self.easy[name].handle) == 0

    def turn(self, milliseconds=50):
        """One perform and one wait; how many run."""
        running = ctypes.c_int(-1)
        assert self.curl.multi_perform(self.multi, ctypes.byref(running)) == 0
        if running.value:
            self.curl.multi_poll(self.multi, None, 0, milliseconds, None)
        return running.value

    def messages(self):
        """(name, code) in the order in which they are told."""
        told, left = [], ctypes.c_int()
        while message := self.curl.multi_info_read(self.multi, ctypes.byref(left)):
            handle = message.contents.easy
            told.append(([n for n, e in self.easy.items() if e.handle.value == handle][0], message.contents.result))
        return told

    def until_messages(self, number):
        """perform until so many have ended; how they did, and whether `running` was 0 before."""
        told, early = [], False
        while len(told) < number and not early:
            running = self.turn()
            told += self.messages()
            early = running == 0 and len(told) < number
        return {"told": told, "early": early}

    def perform_many(self, names, way="perform"):
        for name in names:
            self.add(name)
        if way == "socket":
            told, early = self.socket_actions(len(names)), False
        else:
            told, early = self.until_messages(len(names)).values()
        assert not early, "running was 0 before all had ended"
        codes = dict(told)
        assert sorted(codes) == sorted(names) and len(told) == len(names), told
        results = [self.easy[name].result(codes[name]) for name in names]
        for name in names:
            self.remove(name)
        return results

    def socket_actions(self, number):
        poll, told, running, timeout = select.epoll(), [], ctypes.c_int(), [0]

        def on_socket(_, descriptor, what, *__):
            events = (select.EPOLLIN if what & 1 else 0) | (select.EPOLLOUT if what & 2 else 0)
            try:
                poll.unregister(descriptor)
            except OSError:
                pass
            if what != 4:
                poll.register(descriptor, events)
            return 0

        def on_timer(_, milliseconds, __):
            timeout[0] = milliseconds
            return 0

        sockets, timers = SOCKET(on_socket), TIMER(on_timer)
        assert self.curl.multi_setopt(self.multi, ctypes.c_int(20001), sockets) == 0
        assert self.curl.multi_setopt(self.multi, ctypes.c_int(20004), timers) == 0
        self.curl.multi_socket_action(self.multi, CURL_SOCKET_TIMEOUT, 0, ctypes.byref(running))
        while len(told) < number:
            wait = min(timeout[0], 500) / 1000 if timeout[0] >= 0 else 0.5
            events = poll.poll(wait)
            if not events:
                self.curl.multi_socket_action(self.multi, CURL_SOCKET_TIMEOUT, 0, ctypes.byref(running))
            for descriptor, event in events:
                mask = (1 if event & select.EPOLLIN else 0) | (2 if event & select.EPOLLOUT else 0) | \
                    (4 if event & (select.EPOLLERR | select.EPOLLHUP) else 0)
                self.curl.multi_socket_action(self.multi, descriptor, mask, ctypes.byref(running))
            told += self.messages()
            if running.value == 0:
                assert len(told) == number, "running was 0 before all had ended"
        for option in (20001, 20004):
            self.curl.multi_setopt(self.multi, ctypes.c_int(option), ctypes.c_void_p())
        poll.close()
        return told


def main():
    remote = Remote(sys.argv[1] if len(sys.argv) > 1 else "libcurl.so.4")
    for line in sys.stdin:
        order = json.loads(line)
        try:
            answer = {"result": getattr(remote, order.pop("do"))(**order)}
        except Exception as error:  # told to the test, which raises it
            answer = {"error": repr(error)}
        print(json.dumps(answer), flush=True)


main()
