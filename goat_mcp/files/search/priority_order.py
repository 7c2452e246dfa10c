"""goa's order of search results: source code, then configuration, then documents and data, then media.

Which order is in force is `priority`'s, what a user's file may say in `priority_file`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

_TIERS = (
    "go py rs js jsx ts tsx mjs cjs java kt kts scala c h cc cpp cxx hpp hh cs swift m mm rb php pl pm lua r jl dart "
    "ex exs erl hrl hs ml mli fs fsx clj cljs groovy zig nim v vue svelte sh bash zsh fish ps1 bat sql asm s proto pyi",
    "json json5 jsonc yaml yml toml ini cfg conf env properties xml gradle cmake mk mod lock tf hcl nix editorconfig",
    "md mdx rst txt adoc org tex csv tsv html htm css scss sass less ipynb log diff patch jsonl ndjson",
    "",
    "png jpg jpeg gif webp svg ico bmp tif tiff pdf mp3 mp4 wav ogg flac mov avi mkv webm woff woff2 ttf otf zip gz",
)
_TIER_OF = {extension: tier for tier, extensions in enumerate(_TIERS) for extension in extensions.split()}
_UNKNOWN = _TIERS.index("")


class PriorityOrder:
    """Which kind of file comes before which."""

    def __init__(self, tier_of: Mapping[str, int] = _TIER_OF, unknown: int = _UNKNOWN, problem: str = "") -> None:
        """`tier_of` by extension without its dot, in lower case. `problem`: why this is not the order that the user's
        file wants."""
        self.problem = problem
        self._tier_of = tier_of
        self._unknown = unknown

    def with_tiers(self, tier_of: Mapping[str, int]) -> PriorityOrder:
        """The same order but for these kinds; 0 is source code, 4 is media."""
        return PriorityOrder({**self._tier_of, **tier_of}, self._unknown)

    def after(self, tiers: Sequence[Sequence[str]]) -> PriorityOrder:
        """These kinds first, tier by tier, then all others in the order they had."""
        moved = {kind: tier + len(tiers) for kind, tier in self._tier_of.items()}
        first = {kind: tier for tier, kinds in reversed([*enumerate(tiers)]) for kind in kinds}
        return PriorityOrder({**moved, **first}, self._unknown + len(tiers))

    def tier(self, path: str) -> int:
        """0 is shown first. Unknown kinds come after documents and before media. Source: goa `search_priority.json`."""
        suffix = path.rsplit("/", 1)[-1].lower()
        while "." in suffix:
            suffix = suffix.split(".", 1)[1]
            if (found := self._tier_of.get(suffix)) is not None:
                return found
        return self._unknown
