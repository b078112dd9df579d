"""Hostile pictures: headers of PNG, JPEG, GIF and WebP. The rules are those of the formats' own documents."""
import base64
import struct
import zlib

from .case import ACCEPT, BOUNDED, REFUSE, Rules, flipped

png = Rules("png", ".png", "https://www.w3.org/TR/png-3/")
jpeg = Rules("jpeg", ".jpg", "https://www.w3.org/Graphics/JPEG/itu-t81.pdf")
gif = Rules("gif", ".gif", "https://www.w3.org/Graphics/GIF/spec-gif89a.txt")
webp = Rules("webp", ".webp", "https://developers.google.com/speed/webp/docs/riff_container")

SIGNATURE = b"\x89PNG\r\n\x1a\n"


def chunk(kind, data, crc=None, length=None):
    return struct.pack(">I", len(data) if length is None else length) + kind + data + struct.pack(">I", zlib.crc32(kind + data) if crc is None else crc)


def ihdr(width=2, height=2, depth=8, colour=0, compression=0, filter_=0, interlace=0):
    return chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, depth, colour, compression, filter_, interlace))


END = chunk(b"IEND", b"")
ROWS = chunk(b"IDAT", zlib.compress(b"\0\1\2" * 2))


@png("plain", ACCEPT, "signature, IHDR, IDAT, IEND")
def _(random):
    depth, colour = random.pick([(8, 0), (8, 2), (8, 6), (16, 0), (1, 0)])
    width, height = random.between(1, 9), random.between(1, 9)
    row = (width * depth * {0: 1, 2: 3, 6: 4}[colour] + 7) // 8
    return (SIGNATURE + ihdr(width, height, depth, colour) + chunk(b"IDAT", zlib.compress((b"\0" + random.bytes(row)) * height)) + END,
            {"width": width, "height": height})


png.table(REFUSE, [
    ("signature", "the first eight bytes", [b"\x89PNG\n\x1a\n\0" + ihdr() + ROWS + END, b"", b"\x89PNG"]),
    ("size-zero", "width and height are 1 and more", [SIGNATURE + ihdr(0, 2) + ROWS + END, SIGNATURE + ihdr(2, 0) + ROWS + END]),
    ("size-range", "width and height are below 2^31", [SIGNATURE + ihdr(2**31, 1) + ROWS + END, SIGNATURE + ihdr(1, 2**32 - 1) + ROWS + END]),
    ("depth", "the pairs of depth and colour type are listed", [SIGNATURE + ihdr(depth=d, colour=c) + ROWS + END for d, c in ((3, 0), (16, 3), (1, 2), (8, 5), (0, 0))]),
    ("methods", "compression and filter method are 0, interlace is 0 or 1", [SIGNATURE + ihdr(**{k: 9}) + ROWS + END for k in ("compression", "filter_", "interlace")]),
    ("order", "IHDR comes first, and there is an IDAT", [SIGNATURE + ROWS + ihdr() + END, SIGNATURE + ihdr() + END]),
    ("length", "a chunk is within the file", [SIGNATURE + ihdr() + chunk(b"IDAT", b"abc", length=n) for n in (2**31 - 1, 2**32 - 1, 1000)]),
    ("rows", "the data have all rows", [SIGNATURE + ihdr(100, 100) + ROWS + END, SIGNATURE + ihdr(2**31 - 1, 2**31 - 1) + ROWS + END]),
    ("cut", "a file ends with IEND", [(SIGNATURE + ihdr() + ROWS)[:n] for n in (9, 20, 35, 50)]),
])
png.table(BOUNDED, [
    ("crc", "a decoder may treat a wrong CRC as an error", SIGNATURE + ihdr() + chunk(b"IDAT", zlib.compress(b"\0\1\2" * 2), crc=1) + END),
    ("bomb", "a small file may hold a large picture", [SIGNATURE + ihdr(30000, 30000, 8, 6) + chunk(b"IDAT", zlib.compress(bytes(10**6))) + END]),
])


@png("bits", BOUNDED, "bits flipped")
def _(random):
    return flipped(random, SIGNATURE + ihdr() + ROWS + END)


def segment(marker, data, length=None):
    return b"\xff" + bytes([marker]) + struct.pack(">H", len(data) + 2 if length is None else length) + data


def frame(width=8, height=8, precision=8, parts=b"\1\x11\0", count=1, kind=0xC0, length=None):
    return segment(kind, struct.pack(">BHHB", precision, height, width, count) + parts, length)


TABLES = segment(0xDB, b"\0" + b"\1" * 64) + segment(0xC4, b"\0" + b"\1" + bytes(15) + b"\0") + segment(0xC4, b"\x10" + b"\1" + bytes(15) + b"\0")
SCAN = segment(0xDA, b"\1\1\0\0\x3f\0") + b"\x3f"


def photo(head=None, tables=TABLES, scan=SCAN, end=b"\xff\xd9"):
    return b"\xff\xd8" + tables + (frame() if head is None else head) + scan + end


jpeg.table(ACCEPT, [("plain", "SOI, tables, frame, scan, EOI", [(photo(frame(w, h)), {"width": w, "height": h}) for w, h in ((8, 8), (1, 1), (7, 3))])])
jpeg.table(REFUSE, [
    ("start", "a file begins with SOI", [photo()[2:], b"", b"\xff\xd9"]),
    ("size-zero", "a line has 1 sample and more", [photo(frame(0, 8))]),
    ("precision", "baseline samples have 8 bits", [photo(frame(precision=p)) for p in (0, 7, 16, 255)]),
    ("components", "a frame has Nf components of three bytes", [photo(frame(count=n)) for n in (0, 5, 255)]),
    ("sampling", "sampling factors are 1 to 4", [photo(frame(parts=bytes([1, f, 0]))) for f in (0, 0x01, 0x10, 0xff)]),
    ("segment-length", "the length counts itself, and the segment is within the file", [photo(frame(length=n)) for n in (0, 1, 65535)]),
    ("table-missing", "a scan names tables that are defined", [photo(tables=b""), photo(scan=segment(0xDA, b"\1\1\x33\0\x3f\0") + b"\x3f")]),
    ("huffman", "a code table has at most 2^n codes of n bits", [photo(tables=segment(0xDB, b"\0" + b"\1" * 64) + segment(0xC4, b"\0" + b"\xff" * 16 + b"\0" * 40))]),
    ("no-frame", "a scan follows a frame", [b"\xff\xd8" + TABLES + SCAN + b"\xff\xd9"]),
])
jpeg.table(BOUNDED, [("large", "65535 x 65535 with no data", photo(frame(65535, 65535))), ("lines-unknown", "0 lines: a DNL marker follows", photo(frame(8, 0))),
                     ("end-missing", "decoders differ", photo(end=b"")), ("many-scans", "progressive scans without end",
                      photo(frame(2000, 2000, kind=0xC2), scan=segment(0xDA, b"\1\1\0\0\0\0") * 2000))])


@jpeg("bits", BOUNDED, "bits flipped")
def _(random):
    return flipped(random, photo())


def picture(width=1, height=1, left=0, top=0, screen=(1, 1), packed=0x80, code_size=2, blocks=b"\2\x44\1\0", version=b"GIF89a", end=b"\x3b"):
    return (version + struct.pack("<HHBBB", *screen, packed, 0, 0) + b"\0\0\0\xff\xff\xff" + b"\x2c" + struct.pack("<HHHHB", left, top, width, height, 0)
            + bytes([code_size]) + blocks + end)


gif.table(ACCEPT, [("plain", "header, screen, colours, image, trailer", [(picture(version=v), {"width": 1, "height": 1}) for v in (b"GIF89a", b"GIF87a")])])
gif.table(REFUSE, [("signature", "GIF87a or GIF89a", [picture(version=b"GIF90a"), b"", b"GIF"]), ("cut", "blocks have their lengths", [picture()[:n] for n in (8, 15, 20, 28)]),
                   ("code-size", "codes have at most 12 bits", [picture(code_size=n) for n in (12, 13, 255)]),
                   ("outside", "an image lies within the screen", [picture(left=65535), picture(width=5, height=5), picture(top=9)])])
gif.table(BOUNDED, [("large", "65535 x 65535 with few data", picture(65535, 65535, screen=(65535, 65535))), ("codes", "codes that are not defined yet", picture(blocks=b"\2\xff\xff\0")),
                    ("trailer-missing", "decoders differ", picture(end=b""))])


@gif("bits", BOUNDED, "bits flipped")
def _(random):
    return flipped(random, picture())


LOSSLESS = base64.b64decode("UklGRhoAAABXRUJQVlA4TA0AAAAvAAAAEAcQERGIiP4HAA==")


def riff(*chunks, size=None):
    body = b"WEBP" + b"".join(kind + struct.pack("<I", len(data) if n is None else n) + data + b"\0" * (len(data) % 2) for kind, data, n in chunks)
    return b"RIFF" + struct.pack("<I", len(body) if size is None else size) + body


PIXELS = LOSSLESS[20:]
webp.table(ACCEPT, [("plain", "RIFF, WEBP, one chunk of pixels", (LOSSLESS, {"width": 1, "height": 1}))])
webp.table(REFUSE, [("riff", "RIFF and WEBP", [b"RIFX" + LOSSLESS[4:], LOSSLESS[:8] + b"WEBQ" + LOSSLESS[12:], b"", LOSSLESS[:11]]),
                    ("chunk-length", "a chunk is within the file", [riff((b"VP8L", PIXELS, n)) for n in (2**31, 2**32 - 1, 1000)]),
                    ("lossless-signature", "the first byte of VP8L is 0x2f", [riff((b"VP8L", b"\x2e" + PIXELS[1:], None))]),
                    ("lossless-version", "the version number must be 0", [riff((b"VP8L", PIXELS[:4] + bytes([PIXELS[4] | 0xE0]) + PIXELS[5:], None))]),
                    ("canvas", "width times height of the canvas is below 2^32", [riff((b"VP8X", b"\x10\0\0\0" + b"\xff" * 6, None), (b"VP8L", PIXELS, None))]),
                    ("lossy-start-code", "a key frame has the start code 9d 01 2a", [riff((b"VP8 ", b"\x30\1\0\x9d\1\x2b\1\0\1\0" + bytes(9), None))]),
                    ("no-pixels", "there is a chunk of pixels", [riff(), riff((b"EXIF", b"abcd", None))])])
webp.table(BOUNDED, [("riff-length", "a reader may ignore what is behind the RIFF chunk", [riff((b"VP8L", PIXELS, None), size=n) for n in (0, 2**32 - 10)]),
                     # CVE-2023-4863: tables of Huffman codes larger than their buffer.
                     ("codes", "code lengths that fill no tree", riff((b"VP8L", PIXELS[:5] + b"\xff" * 200, None))),
                     ("large", "16384 x 16384 with few data", riff((b"VP8L", b"\x2f\xff\xff\xff\x0f" + PIXELS[5:], None)))])


@webp("bits", BOUNDED, "bits flipped")
def _(random):
    return flipped(random, LOSSLESS)
