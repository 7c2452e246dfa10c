"""What a user can configure about the web: the settings `web.*`."""

from __future__ import annotations

from goat_mcp.core.settings_part import SettingsPart
from goat_mcp.web.search.options import SearchOptions


class WebOptions(SettingsPart):
    search: SearchOptions = SearchOptions()
