"""Who may ask: API keys, of which only hashes are kept and compared without telling how far."""

import hashlib
import hmac
import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from regard.errors import DataError
from regard.serve.refusals import Refused

_LINE = re.compile(r"(?P<digest>[0-9a-fA-F]{64})(?:\s+(?P<name>\S+))?(?:\s+(?P<chars>\d+))?")


@dataclass(eq=False)
class Owner:
    """Whose key it is: a name for logs, and how many characters it has had translated."""

    name: str
    chars_limit: int = 0  # 0: any
    chars: int = 0
    is_known: bool = True  # False where no key is configured, so anybody is the same

    def count(self, chars: int) -> None:
        """Count characters, or refuse if the key has no more of them."""
        if self.chars_limit and self.chars + chars > self.chars_limit:
            raise Refused(
                456,
                "quota",
                DataError(
                    "this key has {limit} characters, and {used} of them are used",
                    limit=self.chars_limit,
                    used=self.chars,
                ),
            )
        self.chars += chars


class Keys:
    """The keys that open the server; with none of them every client is let in."""

    def __init__(self, owners: Iterable[tuple[bytes, Owner]] = ()) -> None:
        self.owners = list(owners)
        self.anybody = Owner("", is_known=False)

    def owner(self, key: str | None) -> Owner:
        """Whose key this is; all are compared, so that time tells nothing."""
        if not self.owners:
            return self.anybody
        if not key:
            raise Refused(
                403,
                "key_missing",
                DataError("this server needs an API key; send the one you were given"),
            )
        digest = digest_of(key)
        found = [owner for known, owner in self.owners if hmac.compare_digest(known, digest)]
        if not found:
            raise Refused(
                403, "key_wrong", DataError("this API key is not known here; check its spelling")
            )
        return found[0]


def digest_of(key: str) -> bytes:
    """What is kept of a key. Keys are long and drawn by chance, so no salt is needed."""
    return hashlib.sha256(key.encode("utf-8", "surrogatepass")).digest()


def keys_of(plain: Iterable[str], file: Path | None) -> Keys:
    """The keys given on the command line, and those in a file of hashes."""
    owners = [(digest_of(key), Owner(f"key{n}")) for n, key in enumerate(plain, start=1)]
    return Keys([*owners, *(_read(file) if file else ())])


def _read(file: Path) -> list[tuple[bytes, Owner]]:
    """A line for each key: its sha256, and maybe a name, and how many characters it has."""
    owners = []
    for number, line in enumerate(file.read_text(encoding="utf-8").splitlines(), start=1):
        bare = line.split("#")[0].strip()
        if not bare:
            continue
        found = _LINE.fullmatch(bare)
        if found is None:
            raise DataError(
                "{file}, line {line} is no key: its sha256 in 64 digits, then maybe a name, then "
                "maybe how many characters it has",
                file=file,
                line=number,
            )
        owner = Owner(found["name"] or f"line{number}", int(found["chars"] or 0))
        owners.append((bytes.fromhex(found["digest"]), owner))
    return owners
