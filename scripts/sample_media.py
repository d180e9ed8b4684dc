"""The picture and the sound of the sample suite, byte by byte, so that no encoder has to be installed.

:mod:`make_sample_files` writes them to disk.
"""

from __future__ import annotations

import struct
import zlib


def shapes() -> bytes:
    """A PNG of 240 × 160 pixels: squares and discs in red and blue, none touching another."""
    width, height, side = 240, 160, 22
    white, red, blue = (255, 255, 255), (200, 30, 30), (30, 60, 190)
    squares = (
        (14, 12, red), (62, 20, red), (118, 10, blue), (170, 18, red), (22, 62, blue),
        (140, 58, red), (200, 70, red), (60, 118, blue), (104, 122, red),
    )  # fmt: skip
    discs = ((92, 72, red), (180, 130, red), (30, 125, blue))
    pixels = [[white] * width for _ in range(height)]
    for left, top, colour in squares:
        for y in range(top, top + side):
            pixels[y][left : left + side] = [colour] * side
    for middle_x, middle_y, colour in discs:
        for y in range(middle_y - 12, middle_y + 13):
            for x in range(middle_x - 12, middle_x + 13):
                if (x - middle_x) ** 2 + (y - middle_y) ** 2 <= 144:
                    pixels[y][x] = colour

    def chunk(name: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))

    scanlines = b"".join(b"\0" + bytes(value for pixel in row for value in pixel) for row in pixels)
    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    return (
        b"\x89PNG\r\n\x1a\n"
        + chunk(b"IHDR", header)
        + chunk(b"IDAT", zlib.compress(scanlines, 9))
        + chunk(b"IEND", b"")
    )


def recording() -> bytes:
    """An MP3 (MPEG-1 Layer III, mono, 48 kHz, 32 kbit/s, frames of 96 bytes and 24 ms) with four beeps.

    A beep is one spectral line of 1 kHz in every granule, written with Huffman table 1 of ISO/IEC 11172-3:
    a pair of zeros is ``1``, and the pair (1, 0) is ``01`` and a sign bit. A silent granule has no data.
    """
    pairs_before = 12  # line 24 of 576 over 24 kHz is 1 kHz
    tone = "1" * pairs_before + "01" + "0"

    def side_info(bits: int, pairs: int) -> str:
        # part2_3_length, big_values, global_gain, scalefac_compress, window switching, three table numbers,
        # region sizes, preflag, scalefac_scale, count1 table
        tables = f"{1 if pairs else 0:05b}" * 3
        return f"{bits:012b}{pairs:09b}{203 if pairs else 0:08b}00000{tables}{0:07b}000"

    def frame(beep: bool) -> bytes:
        data = tone if beep else ""
        granule = side_info(len(data), pairs_before + 1 if beep else 0)
        bits = "0" * 18 + granule * 2 + data * 2
        header = b"\xff\xfb\x14\xc0"
        return header + int(bits.ljust(92 * 8, "0"), 2).to_bytes(92, "big")

    silence, beep = frame(False), frame(True)
    return silence * 10 + (beep * 9 + silence * 14) * 4
