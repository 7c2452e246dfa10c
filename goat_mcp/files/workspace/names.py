"""When two names may be one file: as the file systems compare them that do not go by the bytes.

APFS and HFS+ (macOS) compare without case, and an accent that is a character of its own equals the composed one; HFS+
also leaves some invisible characters out. NTFS, and so `/mnt/c` in WSL, compares without case by a table of its own,
which knows no accents of either kind. Each has its edition of Unicode, and special cases like `ß`. So `comparable` is
coarser than any of them: what one of them takes for one name is equal here, and a few names are, too, that some of
them keep apart. It is right for a prohibition and for waiting in turn; it is not for finding a file.
"""

from __future__ import annotations

import unicodedata
from functools import lru_cache

_IGNORED_BY_SOME = dict.fromkeys((*range(0x200B, 0x2010), *range(0x202A, 0x202F), *range(0x206A, 0x2070), 0xFEFF))
"""Characters that HFS+ leaves out of names."""


def comparable(name: str) -> str:
    """Equal for names, or whole paths, that some file system takes for one."""
    return name.lower() if name.isascii() else _comparable(name)


@lru_cache(maxsize=4096)
def _comparable(name: str) -> str:
    decomposed = unicodedata.normalize("NFD", name.translate(_IGNORED_BY_SOME))
    # Folded twice: some characters fold to what folds again only once it is decomposed (the Greek iota below).
    folded = unicodedata.normalize("NFD", decomposed.casefold()).casefold()
    return unicodedata.normalize("NFC", folded)
