"""goa's order of search results: source code, then configuration, then documents and data, then media."""

from __future__ import annotations

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


def tier(path: str) -> int:
    """0 is shown first. Unknown kinds come after documents and before media. Source: goa `search_priority.json`."""
    name = path.rsplit("/", 1)[-1]
    return _TIER_OF.get(name.rsplit(".", 1)[-1].lower(), _UNKNOWN) if "." in name else _UNKNOWN
