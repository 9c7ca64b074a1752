"""Compressed streams as Spark writes its event logs, and as everybody else writes theirs.

Spark's lz4 and snappy are framed by the Java libraries lz4-java (``LZ4Block``) and snappy-java, not by the standard
frame formats; its lzf is LibLZF in blocks. A stream that is damaged or ends too early yields what came before, and
then raises `EOFError`.
"""

from __future__ import annotations

import gzip
import io
import struct
import zlib
from collections.abc import Callable, Iterator
from typing import Any, BinaryIO, cast

import pyarrow as pa

__all__ = ["READ", "Chunks", "opened"]

LZ4_MAGIC, SNAPPY_MAGIC = b"LZ4Block", b"\x82SNAPPY\x00"
LZ4_RAW, LZ4_PACKED = 0x10, 0x20
SKIPPED = b"\x2a\x4d\x18"
"""Behind a byte from 0x50 to 0x5f, begins a frame that holds nothing of the text."""
MAX_BLOCK = 1 << 27
READ = 1 << 20
SMALL = 1 << 13
HEAD = 8


def opened(stream: Any) -> BinaryIO:
    """``stream`` uncompressed, whatever its name says: the codec is known by the first bytes.

    Args:
        stream: a binary file-like object, compressed by gzip, zstd, lz4, snappy, lzf or bz2, or plain.
    """
    head = bytes(stream.read(HEAD))
    while len(head) == HEAD and head[1:4] == SKIPPED and head[0] >> 4 == 5:  # of zstd and lz4: notes to themselves
        left = int.from_bytes(head[4:], "little")
        while left > 0 and (noted := stream.read(min(READ, left))):
            left -= len(noted)
        head = bytes(stream.read(HEAD))
    whole = cast("BinaryIO", _Joined(head, stream))
    for magic, read in _CODECS:
        if head.startswith(magic):
            return io.BufferedReader(Chunks(read(whole)), READ)
    return io.BufferedReader(Chunks(_plain(whole)), READ)


class Chunks(io.RawIOBase):
    """A raw stream over an iterator of bytes."""

    def __init__(self, chunks: Iterator[bytes]) -> None:
        self.chunks, self.rest = chunks, memoryview(b"")

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        while not self.rest:
            chunk = next(self.chunks, None)
            if chunk is None:
                return 0
            self.rest = memoryview(chunk)
        size = min(len(buffer), len(self.rest))
        buffer[:size] = self.rest[:size]
        self.rest = self.rest[size:]
        return size


def _plain(stream: BinaryIO) -> Iterator[bytes]:
    while chunk := stream.read(READ):
        yield bytes(chunk)


def _gzip(stream: BinaryIO) -> Iterator[bytes]:
    with gzip.GzipFile(fileobj=stream) as inner:
        while True:
            try:
                chunk = inner.read1(READ)
            except (zlib.error, gzip.BadGzipFile) as error:
                raise EOFError("the gzip stream is damaged") from error
            if not chunk:
                return
            yield chunk


def _arrow(codec: str) -> Callable[[BinaryIO], Iterator[bytes]]:
    def read(stream: BinaryIO) -> Iterator[bytes]:
        inner = pa.CompressedInputStream(pa.PythonFile(stream, mode="r"), codec)
        while True:
            try:
                chunk = inner.read(SMALL)  # of a damaged stream, what came before the damage is to be had
            except (OSError, pa.ArrowException) as error:
                raise EOFError(f"the {codec} stream is damaged or ends too early") from error
            if not chunk:
                return
            yield chunk

    return read


def _exactly(stream: BinaryIO, size: int) -> bytes:
    found = stream.read(size)
    if len(found) < size:
        raise EOFError("the stream ends in the middle of a block")
    return bytes(found)


def _unpacked(codec: pa.Codec, data: bytes, size: int) -> bytes:
    try:
        return bytes(codec.decompress(data, size, asbytes=True))
    except (OSError, pa.ArrowException) as error:
        raise EOFError("a damaged block") from error


def _lz4(stream: BinaryIO) -> Iterator[bytes]:
    codec = pa.Codec("lz4_raw")
    while head := stream.read(len(LZ4_MAGIC)):
        if head != LZ4_MAGIC:
            raise EOFError("a block does not begin with LZ4Block")
        token, packed, size, _ = struct.unpack("<BiiI", _exactly(stream, 13))
        if not 0 <= size <= MAX_BLOCK or not 0 <= packed <= MAX_BLOCK:
            raise EOFError("a block of impossible size")
        data = _exactly(stream, packed)
        if token & 0xF0 == LZ4_PACKED:
            yield _unpacked(codec, data, size)
        elif token & 0xF0 != LZ4_RAW:
            raise EOFError("a block of a form that LZ4Block does not have")
        elif data:
            yield data


def _snappy(stream: BinaryIO) -> Iterator[bytes]:
    codec = pa.Codec("snappy")
    _exactly(stream, len(SNAPPY_MAGIC) + 8)
    while length := stream.read(4):
        if bytes(length) == SNAPPY_MAGIC[:4]:  # a stream appended to another begins with the header again
            _exactly(stream, len(SNAPPY_MAGIC) + 4)
            continue
        size = int.from_bytes(length, "big")
        if len(length) < 4 or size > MAX_BLOCK:
            raise EOFError("the stream ends in the middle of a block")
        data = _exactly(stream, size)
        yield _unpacked(codec, data, _varint(data))


def _varint(data: bytes) -> int:
    result = 0
    for i, byte in enumerate(data[:5]):
        result |= (byte & 0x7F) << (7 * i)
        if byte < 0x80:
            break
    if result > MAX_BLOCK:
        raise EOFError("a block of impossible size")
    return result


def _lzf(stream: BinaryIO) -> Iterator[bytes]:
    while head := stream.read(5):
        if len(head) < 5 or bytes(head[:2]) != b"ZV" or head[2] > 1:
            raise EOFError("a block does not begin with ZV")
        packed = int.from_bytes(head[3:], "big")
        if head[2] == 0:
            yield _exactly(stream, packed)
        else:
            size = int.from_bytes(_exactly(stream, 2), "big")
            yield _lzf_block(_exactly(stream, packed), size)


def _lzf_block(data: bytes, size: int) -> bytes:
    """One block of LibLZF: literal runs, and copies of what was written up to 8 KiB before."""
    out, i = bytearray(), 0
    try:
        while i < len(data):
            control = data[i]
            i += 1
            if control < 32:
                out += data[i : i + control + 1]
                i += control + 1
                continue
            length = control >> 5
            if length == 7:
                length += data[i]
                i += 1
            back = ((control & 0x1F) << 8 | data[i]) + 1
            i += 1
            for _ in range(length + 2):
                out.append(out[-back])
    except IndexError as error:
        raise EOFError("a damaged LZF block") from error
    if len(out) != size:
        raise EOFError("a damaged LZF block")
    return bytes(out)


_CODECS: tuple[tuple[bytes, Callable[[BinaryIO], Iterator[bytes]]], ...] = (
    (b"\x1f\x8b", _gzip),
    (b"\x28\xb5\x2f\xfd", _arrow("zstd")),
    (LZ4_MAGIC, _lz4),
    (b"\x04\x22\x4d\x18", _arrow("lz4")),
    (SNAPPY_MAGIC, _snappy),
    (b"ZV\x00", _lzf),
    (b"ZV\x01", _lzf),
    (b"BZh", _arrow("bz2")),
)


class _Joined:
    """``head`` and then the rest of ``stream``."""

    closed = False

    def __init__(self, head: bytes, stream: Any) -> None:
        self.head, self.stream = head, stream

    def read(self, size: int = -1) -> bytes:
        found, self.head = (self.head, b"") if size < 0 else (self.head[:size], self.head[size:])
        if size < 0:
            return found + bytes(self.stream.read())
        while len(found) < size and (more := bytes(self.stream.read(size - len(found)))):
            found += more
        return found

    def close(self) -> None:
        self.stream.close()
