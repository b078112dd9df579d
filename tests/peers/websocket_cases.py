"""The cases of the Autobahn test suite in Python 3, on a socket of our own. They are Python 2: texts are bytes, so they are read
here as Latin-1, and the few modules that they import are small ones of ours."""
import binascii
import builtins
import glob
import heapq
import os
import re
import socket
import struct
import time
import types

CODES = {"NORMAL": 1000, "GOING_AWAY": 1001, "PROTOCOL_ERROR": 1002, "INVALID_PAYLOAD": 1007}


class Utf8Validator:
    def reset(self):
        pass

    def validate(self, text):
        """(valid so far, ends with a character)."""
        data = text.encode("latin-1")
        try:
            data.decode()
            return True, True
        except UnicodeDecodeError as e:
            return "unexpected end" in e.reason, False


class States:
    STATE_CLOSED, STATE_CONNECTING, STATE_CLOSING, STATE_OPEN = range(4)


def classes(folder):
    """The classes of the cases, by their numbers: sections 1 to 7 and 10."""
    modules = {"binascii": types.SimpleNamespace(b2a_hex=lambda text: binascii.b2a_hex(text.encode("latin-1")).decode()),
               "autobahn.websocket.protocol": types.SimpleNamespace(WebSocketProtocol=States),
               "autobahn.websocket.utf8validator": types.SimpleNamespace(Utf8Validator=Utf8Validator)}
    paths = {os.path.basename(path)[:-3]: path for path in glob.glob(os.path.join(folder, "case*.py"))}

    def load(name, _globals=None, _locals=None, _wanted=(), _level=0):
        if name not in modules:
            if name not in paths:
                return builtins.__import__(name)
            with open(paths[name], encoding="latin-1") as file:
                text = re.sub(r"\(object, Case, ?\)", "(Case,)", file.read().split('if __name__ == "__main__"')[0].split("if __name__ == '__main__'")[0])
            text = re.sub(r"^( *)print .*$", r"\1pass", text, flags=re.M).replace(") / self", ") // self")
            module = types.ModuleType(name)
            module.__dict__.update(__builtins__={**vars(builtins), "__import__": load}, xrange=range)
            modules[name] = module
            exec(compile(text, paths[name], "exec"), module.__dict__)
        return modules[name]

    found = {}
    for name in paths:
        if re.match(r"case([1-7]|10)_", name):
            for value in vars(load(name)).values():
                for one in value if isinstance(value, list) else [value]:
                    if isinstance(one, type) and re.match(r"Case\d", one.__name__):
                        found[one.__name__[4:].replace("_", ".")] = one
    return dict(sorted(found.items(), key=lambda item: [int(n) for n in item[0].split(".")]))


class Protocol:
    """What a case sees of a connection. The server has no echo: it answers each text with one text, which counts as that text."""

    def __init__(self, port, path):
        self.factory = types.SimpleNamespace(isServer=False)
        for name, code in CODES.items():
            setattr(self, "CLOSE_STATUS_CODE_" + name, code)
        self.socket = socket.create_connection(("127.0.0.1", port), 10)
        self.socket.sendall(f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\n"
                            "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n".encode())
        self.data = b""
        while b"\r\n\r\n" not in self.data:
            self.data += self.socket.recv(4096)
        head, self.data = self.data.split(b"\r\n\r\n", 1)
        self.connectionWasOpen = head.startswith(b"HTTP/1.1 101")
        self.state = States.STATE_OPEN
        self.timers, self.order, self.sent, self.building, self.frames = [], 0, [], None, []
        self.closedByMe = self.wasClean = self.droppedByMe = self.failedByMe = False
        self.remoteCloseCode = self.localCloseReason = self.remoteCloseReason = None
        self.autoFragmentSize, self.txFrameStats, self.reply = 0, {}, None

    def write(self, data):
        try:
            self.socket.sendall(data)
        except OSError:
            pass  # the server has closed; what it said is read

    def sendFrame(self, opcode, payload="", fin=True, rsv=0, mask=None, payload_len=None, chopsize=None, sync=False):
        data = payload.encode("latin-1")
        if payload_len:
            data = (data * (payload_len // max(len(data), 1) + 1))[:payload_len]
        self.txFrameStats[opcode] = self.txFrameStats.get(opcode, 0) + 1
        size = bytes([128 | len(data)]) if len(data) < 126 else struct.pack(">BH" if len(data) < 65536 else ">BQ", 254 if len(data) < 65536 else 255, len(data))
        key = os.urandom(4)
        frame = bytes([fin << 7 | rsv << 4 | opcode]) + size + key + bytes(b ^ key[i & 3] for i, b in enumerate(data))
        for at in range(0, len(frame), chopsize or len(frame)):
            self.write(frame[at:at + (chopsize or len(frame))])
        if opcode in (1, 2):
            self.building = (opcode, b"")
        if opcode in (0, 1, 2) and self.building:
            self.building = (self.building[0], self.building[1] + data)
            if fin:
                self.sent.append(self.building)
                self.building = None

    def sendMessage(self, payload, isBinary=False, binary=False, fragmentSize=None, payload_frag_size=None, sync=False):
        size = fragmentSize or payload_frag_size or self.autoFragmentSize or max(len(payload), 1)
        parts = [payload[i:i + size] for i in range(0, len(payload), size)] or [""]
        for i, part in enumerate(parts):
            self.sendFrame((2 if isBinary or binary else 1) if i == 0 else 0, part, i + 1 == len(parts))

    # A message of one frame whose bytes come in pieces.
    def beginMessage(self, isBinary=False, binary=False):
        self.head = bytes([128 | (2 if isBinary or binary else 1)])

    def beginMessageFrame(self, length):
        self.key, self.at, self.whole = os.urandom(4), 0, b""
        self.write(self.head + (bytes([128 | length]) if length < 126 else struct.pack(">BH", 254, length)) + self.key)

    def sendMessageFrameData(self, payload, sync=False):
        data = payload.encode("latin-1")
        self.write(bytes(b ^ self.key[(self.at + i) & 3] for i, b in enumerate(data)))
        self.at += len(data)
        self.whole += data

    def endMessage(self):
        self.sent.append((1, self.whole))

    def sendCloseFrame(self, code=None, reasonUtf8=None, reasonRaw=None, isReply=False):
        if self.state == States.STATE_OPEN:
            self.state, self.closedByMe, self.localCloseReason = States.STATE_CLOSING, not isReply, reasonUtf8
            self.later(3, self.drop)
        body = (struct.pack(">H", code) if code is not None else b"") + (reasonUtf8 or reasonRaw or "").encode("latin-1")
        self.sendFrame(8, body.decode("latin-1"))

    def sendClose(self, code=None, reason=None):
        if self.state == States.STATE_OPEN:
            self.sendCloseFrame(code, reason)

    def later(self, seconds, function, *words):
        self.order += 1
        heapq.heappush(self.timers, (time.monotonic() + seconds, self.order, function, words))

    def continueLater(self, seconds, function, tag=None):
        self.later(seconds, function)

    def killAfter(self, seconds):
        self.later(seconds, self.fail)

    def closeAfter(self, seconds):
        self.later(seconds, self.sendClose)

    def fail(self):
        if self.state == States.STATE_OPEN:
            self.failedByMe = True
            self.drop()

    def drop(self):
        if self.state != States.STATE_CLOSED:
            self.state, self.droppedByMe = States.STATE_CLOSED, True

    def received(self, case, opcode, data):
        text = data.decode("latin-1")
        if opcode == 8:
            if len(data) >= 2:
                self.remoteCloseCode, self.remoteCloseReason = struct.unpack(">H", data[:2])[0], text[2:]
            self.wasClean = True
            if self.state == States.STATE_OPEN:
                self.sendCloseFrame(self.remoteCloseCode, isReply=True)
            case.onClose(True, self.remoteCloseCode, self.remoteCloseReason)
        elif opcode == 9:
            self.sendFrame(10, text)
            case.onPing(text)
        elif opcode == 10:
            case.onPong(text)
        elif self.sent:
            kind, sent = self.sent.pop(0)
            case.onMessage(sent.decode("latin-1"), kind == 2)

    def frame(self):
        """The first whole frame of what has come."""
        if len(self.data) < 2:
            return None
        size, at = self.data[1] & 127, 2
        if size > 125:
            form = ">H" if size == 126 else ">Q"
            at += struct.calcsize(form)
            if len(self.data) < at:
                return None
            size = struct.unpack(form, self.data[2:at])[0]
        if len(self.data) < at + size:
            return None
        opcode, payload = self.data[0] & 15, self.data[at:at + size]
        self.data = self.data[at + size:]
        return opcode, payload

    def run(self, case):
        case.onOpen()
        end = time.monotonic() + 20
        while self.state != States.STATE_CLOSED and time.monotonic() < end:
            while found := self.frame():
                self.received(case, *found)
            wait = max(min([self.timers[0][0], end] if self.timers else [end]) - time.monotonic(), 0.001)
            self.socket.settimeout(wait)
            try:
                data = self.socket.recv(65536)
                if not data:
                    self.state = States.STATE_CLOSED
                self.data += data
            except TimeoutError:
                pass
            except OSError:
                self.state = States.STATE_CLOSED
            while self.timers and self.timers[0][0] <= time.monotonic() and self.state != States.STATE_CLOSED:
                _, _, function, words = heapq.heappop(self.timers)
                function(*words)
        self.socket.close()
        case.onConnectionLost(self.failedByMe)
