"""Bytes to lines: decompressed by content, split at the line feed only, decoded as UTF-8.

    file or stdin -> blocks of bytes -> lines, each text or what is wrong with it

Nothing here holds more than a few blocks, however long the file, the line or the archive.
"""

import bz2
import codecs
import lzma
import re
import sys
import zlib
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from typing import Protocol, runtime_checkable

from regard.errors import DataError

BLOCK = 1 << 18
BOMB_BYTES, BOMB_RATIO = 256 << 20, 200  # beyond both, an archive is no corpus
XZ_MEMORY = 160 << 20
HEAD_LINES, HEAD_BYTES = 1000, 4 << 20  # what must be UTF-8 for the most part
GUESS_BYTES = 1 << 16  # what a guess at an encoding looks at
MAX_LINE_BYTES = 1_000_000


@dataclass(frozen=True, slots=True)
class BadText:
    """What stands where a text could not be read: the kind of fault, and where in the text.

    `text` is as much of it as can be read, with � for what cannot; a line too long is not kept.
    """

    kind: str
    detail: str
    text: str = field(default="", compare=False)


def read_lines(
    path: Path,
    *,
    max_line_bytes: int = MAX_LINE_BYTES,
    carriage_returns: Counter[str] | None = None,
) -> Iterator[str | BadText]:
    """Every line of a file, `-` being stdin; a CR before the line feed is taken off and counted."""
    returns = Counter[str]() if carriage_returns is None else carriage_returns
    return lines_in(read_blocks(path), str(path), max_line_bytes, returns)


def lines_in(
    blocks: Iterator[bytes], file: str, max_line_bytes: int, carriage_returns: Counter[str]
) -> Iterator[str | BadText]:
    """Every line of the content of a file, wherever it lies."""
    for chunk in whole_lines(_after_head(blocks, file), max_line_bytes):
        if isinstance(chunk, int):
            yield BadText("too-long", f"{chunk} bytes")
        else:
            yield from _decoded(chunk, max_line_bytes, file, carriage_returns)


def sound_text(text: str, max_bytes: int) -> str | BadText:
    """The text, unless it could not be a line of UTF-8 that `read_lines` accepts."""
    try:
        size = len(text.encode())
    except UnicodeEncodeError as error:
        code = ord(text[error.start])
        return BadText("invalid-utf8", f"U+{code:04X} alone at character {error.start + 1}")
    if size > max_bytes:
        return BadText("too-long", f"{size} bytes")
    if "\0" in text:
        return BadText("nul", f"character {text.index(chr(0)) + 1}")
    return text


def whole_lines(blocks: Iterator[bytes], max_line_bytes: int) -> Iterator[bytes | int]:
    """Many lines at a time, without the last line feed; of a line over the limit, its length."""
    rest, skipped = b"", 0
    for block in blocks:
        if skipped:
            end = block.find(b"\n")
            if end < 0:
                skipped += len(block)
                continue
            yield skipped + end
            block, skipped = block[end + 1 :], 0
        end = block.rfind(b"\n")
        if end >= 0:
            yield rest + block[:end]
            rest = b""
        rest += block[end + 1 :]
        if len(rest) > max_line_bytes:
            rest, skipped = b"", len(rest)
    if skipped:
        yield skipped
    elif rest:
        yield rest


def read_blocks(path: Path) -> Iterator[bytes]:
    """The content of a file, decompressed if its first bytes say so, in blocks of bounded size."""
    try:
        stdin = str(path) == "-"
        with nullcontext(sys.stdin.buffer) if stdin else path.open("rb", buffering=0) as file:
            yield from content_of(iter(lambda: file.read(BLOCK), b""), str(path))
    except FileNotFoundError:
        raise DataError("there is no file {path}", path=path) from None
    except OSError as error:
        reason = error.strerror or error
        raise DataError("{file} cannot be read: {reason}", file=path, reason=reason) from error


def content_of(raw: Iterator[bytes], file: str) -> Iterator[bytes]:
    """The bytes of a file as they lie there, decompressed if the first of them say so."""
    head = b"".join(_until(raw, len(_LONGEST_MAGIC)))
    if not head:
        raise DataError("{file} is empty", file=file)
    name, new = _decompressor_for(head)
    content = chain((head,), raw)
    yield from content if new is None else _decompressed(content, name, new, file)


def guess_encoding(sample: bytes) -> str | None:
    """The likely encoding of text that is not UTF-8, by the name that iconv knows."""
    sample = sample[:GUESS_BYTES]
    if utf16 := _utf16_name(sample):
        return utf16
    high = sample.translate(None, bytes(range(0x80)))
    if len(high) < 6:
        return None  # too little to go by
    # Chinese in either encoding decodes as the other now and then, but not to common characters.
    for encoding, common in (("gb18030", "gb2312"), ("big5", "gb18030")):
        text = re.sub(r"[\x00-\x7f]", "", _text_in(sample, encoding) or "")
        if text and len(text.encode(common, "ignore").decode(common)) > 0.9 * len(text):
            return encoding.upper()
    n_letters = len(high.translate(None, bytes(range(0xC0))))  # accented ones, in Windows-1252
    is_latin = n_letters > 0.6 * len(high) and len(high) < 0.3 * len(sample)
    return "WINDOWS-1252" if is_latin and _text_in(sample, "cp1252") else None


def refuse_encoding(file: str, encoding: str) -> DataError:
    """The error of a file that is in another encoding."""
    return DataError(
        "{file} is not UTF-8 but looks like {encoding}; convert it with "
        "iconv -f {encoding} -t UTF-8",
        file=file,
        encoding=encoding,
    )


def _decoded(
    chunk: bytes, max_line_bytes: int, file: str, returns: Counter[str]
) -> Iterator[str | BadText]:
    # Almost every chunk is plain text, and is decoded and split whole: lines one by one take
    # four times as long.
    if len(chunk) <= max_line_bytes and b"\0" not in chunk and b"\r" not in chunk:
        try:
            yield from chunk.decode().split("\n")
            return
        except UnicodeDecodeError:
            pass
    for line in chunk.split(b"\n"):
        if line.endswith(b"\r"):
            returns[file] += 1
            line = line[:-1]
        yield decoded_line(line, max_line_bytes)


def decoded_line(line: bytes, max_line_bytes: int = MAX_LINE_BYTES) -> str | BadText:
    """A line without its end, or what is wrong with it."""
    if len(line) > max_line_bytes:
        return BadText("too-long", f"{len(line)} bytes")
    if b"\0" in line:
        return BadText("nul", f"byte {line.index(0) + 1}", line.decode(errors="replace"))
    try:
        return line.decode()
    except UnicodeDecodeError as error:
        where = f"0x{line[error.start]:02x} at byte {error.start + 1}"
        guess = guess_encoding(line)
        readable = line.decode(errors="replace")
        return BadText("invalid-utf8", f"{where}, {guess}?" if guess else where, readable)


def _after_head(blocks: Iterator[bytes], file: str) -> Iterator[bytes]:
    """The same blocks without the mark EF BB BF, once the first lines have proved to be UTF-8."""
    first, n_lines, n_bytes = list[bytes](), 0, 0
    for block in blocks:
        first.append(block)
        n_lines += block.count(b"\n")
        n_bytes += len(block)
        if n_lines >= HEAD_LINES or n_bytes >= HEAD_BYTES:
            break
    head = b"".join(first).removeprefix(codecs.BOM_UTF8)
    _check_encoding(head, file)
    return chain((head,), blocks)


def _check_encoding(head: bytes, file: str) -> None:
    is_wide = head.startswith(_UTF16_MARKS) or head.count(0) * 5 > len(head)
    if is_wide and (name := _utf16_name(head)):
        raise refuse_encoding(file, name)
    lines = head.split(b"\n", HEAD_LINES)[:HEAD_LINES]
    lines = lines[:-1] if len(lines) > 1 and not lines[-1] else lines
    n_bad = sum(_text_in(line, "utf-8") is None for line in lines)
    if 2 * n_bad <= len(lines):
        return
    if encoding := guess_encoding(b"\n".join(lines)):
        raise refuse_encoding(file, encoding)
    raise DataError(
        "{file} is not UTF-8: {bad} of its first {lines} lines are not; find out its encoding "
        "and convert it with iconv -f ENCODING -t UTF-8",
        file=file,
        bad=n_bad,
        lines=len(lines),
    )


_UTF16_MARKS = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)


def _utf16_name(sample: bytes) -> str | None:
    if sample.startswith((codecs.BOM_UTF32_LE, codecs.BOM_UTF32_BE)):
        return "UTF-32"
    if sample.startswith(_UTF16_MARKS):
        return "UTF-16"
    # Without a mark: every line ends with a NUL beside the line feed, always on the same side.
    little, big = (
        sample.decode(f"utf-16-{order}", "replace").count("\n") for order in ("le", "be")
    )
    if max(little, big) > 20 * min(little, big):
        return "UTF-16LE" if little > big else "UTF-16BE"
    return None


def _text_in(sample: bytes, encoding: str) -> str | None:
    """The sample decoded, if it can be; its end may stand within a character."""
    try:
        return codecs.getincrementaldecoder(encoding)().decode(sample)
    except UnicodeDecodeError:
        return None


@runtime_checkable
class _Decompressor(Protocol):
    """The shape that bz2's and lzma's already have."""

    @property
    def eof(self) -> bool: ...
    @property
    def needs_input(self) -> bool: ...
    @property
    def unused_data(self) -> bytes: ...
    def decompress(self, data: bytes, max_length: int) -> bytes: ...


class _Gzip:
    """zlib's decompressor in that shape."""

    def __init__(self) -> None:
        self._zlib = zlib.decompressobj(wbits=31)
        self.needs_input = True

    @property
    def eof(self) -> bool:
        return self._zlib.eof

    @property
    def unused_data(self) -> bytes:
        return self._zlib.unused_data

    def decompress(self, data: bytes, max_length: int) -> bytes:
        text = self._zlib.decompress(self._zlib.unconsumed_tail + data, max_length)
        self.needs_input = len(text) < max_length and not self._zlib.unconsumed_tail
        return text


class _Zstandard:
    """zstandard's in that shape; it knows no bound, so it is fed by pieces that cannot grow far."""

    # 4 bytes become 128 KiB at most: 16 MiB for each piece.
    _PIECE = 512

    def __init__(self) -> None:
        import zstandard

        self._zstd = zstandard.ZstdDecompressor().decompressobj()
        self._fed = b""

    @property
    def eof(self) -> bool:
        return self._zstd.eof

    @property
    def needs_input(self) -> bool:
        return not self._fed

    @property
    def unused_data(self) -> bytes:
        return self._zstd.unused_data + self._fed

    def decompress(self, data: bytes, max_length: int) -> bytes:
        fed = memoryview(self._fed + data)
        text, n_bytes, at = list[bytes](), 0, 0
        while at < len(fed) and n_bytes < max_length and not self.eof:
            text.append(self._zstd.decompress(fed[at : at + self._PIECE]))
            n_bytes += len(text[-1])
            at += self._PIECE
        self._fed = bytes(fed[at:])
        return b"".join(text)


_LONGEST_MAGIC = b"\xfd7zXZ\x00"


def _decompressor_for(head: bytes) -> tuple[str, Callable[[], _Decompressor] | None]:
    if head.startswith(b"\x1f\x8b"):
        return "gz", _Gzip
    if head.startswith(b"BZh"):
        return "bz2", bz2.BZ2Decompressor
    if head.startswith(_LONGEST_MAGIC):
        return "xz", lambda: lzma.LZMADecompressor(memlimit=XZ_MEMORY)
    if head.startswith(b"\x28\xb5\x2f\xfd"):
        return "zst", _Zstandard
    return "", None


def _decompressed(
    raw: Iterator[bytes], name: str, new: Callable[[], _Decompressor], file: str
) -> Iterator[bytes]:
    """One archive after another, as `cat a.gz b.gz` makes them, with padding between."""
    engine, taken, given = new(), 0, 0
    for data in raw:
        taken += len(data)
        while data or engine.eof or not engine.needs_input:
            if engine.eof:
                data = (engine.unused_data + data).lstrip(b"\0")
                if not data:
                    break
                engine = new()
            block, data = _unpacked(engine, data, name, file, given), b""
            given += len(block)
            if given > BOMB_BYTES and given > BOMB_RATIO * taken:
                raise _bomb(file, taken, given)
            if block:
                yield block
    if not engine.eof:
        raise DataError(
            "{file} is cut off: its {archive} data end after {given} bytes of content; "
            "fetch it again",
            file=file,
            archive=name,
            given=given,
        )
    if not given:
        raise DataError("{file} holds an archive of nothing", file=file)


def _unpacked(engine: _Decompressor, data: bytes, name: str, file: str, given: int) -> bytes:
    try:
        return engine.decompress(data, BLOCK)
    except Exception as error:  # each of the four has its own class
        raise DataError(
            "{file} is damaged: its {archive} data cannot be unpacked after {given} bytes of "
            "content ({reason}); fetch it again",
            file=file,
            archive=name,
            given=given,
            reason=error,
        ) from error


def _bomb(file: str, taken: int, given: int) -> DataError:
    return DataError(
        "{file} grows to {given} bytes and more from its first {taken}; that is no text, "
        "so unpack it yourself if you trust it",
        file=file,
        given=given,
        taken=taken,
    )


def _until(blocks: Iterator[bytes], n_bytes: int) -> Iterator[bytes]:
    """As many blocks as hold that many bytes: a pipe may give them one by one."""
    taken = 0
    while taken < n_bytes and (block := next(blocks, b"")):
        taken += len(block)
        yield block
