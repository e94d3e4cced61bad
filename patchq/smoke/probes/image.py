"""Does it see? Two tiny pictures, made here."""

from __future__ import annotations

import base64
import random
import struct
import zlib

from patchq.smoke.asking import Asking, excerpt
from patchq.smoke.model import LeftOut, Refused, Wrong
from patchq.smoke.report import Probe

ASK = "Which colour is this picture? Reply with the colour alone."
COLOURS = {"red": b"\xff\0\0", "blue": b"\0\0\xff"}
SIDE = 64
"""Pixels: fewer than some encoders have in a patch would be refused."""
_SHADES = 40
"""How far each of red, green and blue may be off, of 255."""
_NOT_TAKEN = (400, 422)


def png(colour: bytes, side: int = SIDE) -> bytes:
    """A square of one colour (RGB), by the PNG specification, second edition."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return (
            struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
        )

    head = struct.pack(">IIBBBBB", side, side, 8, 2, 0, 0, 0)
    rows = (b"\0" + colour * side) * side
    parts = chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")
    return b"\x89PNG\r\n\x1a\n" + parts


def shade(colour: bytes, draw: random.Random) -> bytes:
    """A colour of the same name. Runs that ask for one another's pictures are answered by the
    caches of the encoder and of the prefix, whatever the encoder does by then."""
    return bytes(abs(value - draw.randrange(_SHADES)) for value in colour)


def _image(asking: Asking) -> str:
    draw = asking.values.draw("image")
    shades = {name: shade(colour, draw) for name, colour in COLOURS.items()}
    asking.evidence["shades"] = {name: f"#{drawn.hex()}" for name, drawn in shades.items()}
    for name, colour in shades.items():
        url = f"data:image/png;base64,{base64.b64encode(png(colour)).decode()}"
        parts = [
            {"type": "image_url", "image_url": {"url": url}},
            {"type": "text", "text": ASK},
        ]
        try:
            reply = asking.chat([{"role": "user", "content": parts}])
        except Refused as refused:
            if refused.status in _NOT_TAKEN:
                raise LeftOut(f"it takes no images: {refused}") from None
            raise
        if name not in reply.answer.lower().split(".")[0].split():
            raise Wrong(f"a {name} square is {excerpt(reply.answer)}")
    return f"it tells {' from '.join(COLOURS)}"


PROBES = (
    Probe(
        "image",
        "a red and a blue square, where it takes images",
        "the answer to each is its colour",
        "an encoder that was loaded wrongly (MIA's quality gate)",
        _image,
    ),
)
