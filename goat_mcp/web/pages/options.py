"""What a user can configure about the web: the settings `web.*`."""

from __future__ import annotations

from typing import Annotated, Any, cast

from pydantic import AfterValidator, BeforeValidator, Field

from goat_mcp.web.http import HttpOptions
from goat_mcp.web.search.options import SearchOptions


def _one_or_many(value: Any) -> Any:
    return cast("Any", [value] if isinstance(value, str) else value)


def _check_host_entry(entry: str) -> str:
    from goat_mcp.web.http.target import check_host_entry  # not at start, where nearly nobody has set any

    return check_host_entry(entry)


HostEntries = Annotated[
    tuple[Annotated[str, AfterValidator(_check_host_entry)], ...],
    BeforeValidator(_one_or_many),
]


class WebOptions(HttpOptions):
    """`allow_hosts` are `host` or `host:port`: they may have private addresses, and plain http stays as it is.

    `cache_s` is how long a page is served again without asking for it; 0 turns that off. `robots` false ignores
    robots.txt. `requests_per_minute` is for each host; 0 means any number.
    """

    allow_hosts: HostEntries = ()
    cache_s: float = Field(default=900.0, ge=0, le=86_400)
    robots: bool = True
    requests_per_minute: int = Field(default=10, ge=0, le=10_000)
    search: SearchOptions = SearchOptions()
