"""An issue tracker."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Any, Literal

from mcp.server.mcpserver.exceptions import ToolError
from pydantic import Field

from bench.tasks.worlds.world import ToolWords, World, long_text

_TITLES = (
    "Login fails after the password was changed",
    "Export of reports takes minutes",
    "Typo on the start page",
    "Crash when a file name has an emoji",
    "Dark theme flickers",
    "Login page is blank in an old browser",
    "Invoices show the wrong currency",
    "Search ignores accents",
    "Backup stops at midnight",
    "Notifications arrive twice",
    "Password reset mail is late",
    "Map does not load on slow lines",
)
_LABELS = ("bug", "performance", "docs", "bug", "ui", "bug", "billing", "search", "ops", "ui", "bug", "ui")
_PEOPLE = ("ana", "bo", "", "cem", "", "", "ana", "", "dee", "bo", "", "cem")
_LARGE_CHARS = 16_000


def _issue(number: int, title: str, labels: list[str], assignee: str, body: str) -> dict[str, Any]:
    made = {"id": number, "title": title, "state": "open", "labels": labels, "assignee": assignee, "body": body}
    return {**made, "comments": list[str]()}


class Issues(World):
    """An issue tracker."""

    name = "issues"
    words = (
        ToolWords("search_issues", ("find issues in the tracker by words, state or label", "search issues")),
        ToolWords("create_issue", ("open a new issue in the tracker", "create issue")),
        ToolWords("update_issue", ("close an issue or change who works on it", "update issue state assignee labels")),
        ToolWords("comment_on_issue", ("write a comment on an issue", "comment issue")),
    )

    def __init__(self) -> None:
        self._issues: dict[int, dict[str, Any]] = {}
        self.reset(False)

    @property
    def tools(self) -> Sequence[Callable[..., Any]]:
        return (self.search_issues, self.create_issue, self.update_issue, self.comment_on_issue)

    @property
    def state(self) -> Mapping[str, Any]:
        return {"issues": self._issues}

    def reset(self, is_large: bool) -> None:
        self._issues.clear()
        for index, (title, label, person) in enumerate(zip(_TITLES, _LABELS, _PEOPLE, strict=True)):
            number = 101 + index
            body = long_text(number, _LARGE_CHARS if is_large else 80)
            self._issues[number] = _issue(number, title, [label], person, body)
        self._issues[104]["state"] = "closed"
        self._issues[109]["state"] = "closed"

    def search_issues(
        self,
        text: Annotated[str, Field(description="Words that the title must contain; empty for all.")] = "",
        state: Annotated[Literal["open", "closed", "any"], Field(description="Only issues in this state.")] = "open",
        label: Annotated[str, Field(description="Only issues with this label; empty for all.")] = "",
        limit: Annotated[int, Field(description="At most so many, newest first.", ge=1, le=100)] = 50,
    ) -> dict[str, Any]:
        """Find issues of the tracker by words in their title, state and label, with all that is known of each."""
        words = text.lower().split()
        found = [
            one
            for one in sorted(self._issues.values(), key=lambda one: -one["id"])
            if all(word in one["title"].lower() for word in words)
            and state in ("any", one["state"])
            and (not label or label in one["labels"])
        ]
        return {"issues": found[:limit], "total": len(found)}

    def create_issue(
        self,
        title: Annotated[str, Field(description="One line that says what is wrong.", min_length=1)],
        body: Annotated[str, Field(description="What happened, and how to see it again.")] = "",
        labels: Annotated[list[str] | None, Field(description="Labels to set.")] = None,
    ) -> dict[str, Any]:
        """Open a new issue in the tracker and return it with its number."""
        number = max(self._issues) + 1
        self._issues[number] = _issue(number, title, list(labels or []), "", body)
        return self._issues[number]

    def update_issue(
        self,
        id: Annotated[int, Field(description="Number of the issue.")],
        state: Annotated[Literal["open", "closed"] | None, Field(description="The new state.")] = None,
        assignee: Annotated[str | None, Field(description="Who works on it from now on; empty for nobody.")] = None,
        labels: Annotated[list[str] | None, Field(description="All labels that it has from now on.")] = None,
    ) -> dict[str, Any]:
        """Change the state, the assignee or the labels of an issue. What is left out stays as it is."""
        issue = self._known(id)
        changes = {"state": state, "assignee": assignee, "labels": labels}
        issue.update({name: value for name, value in changes.items() if value is not None})
        return {"id": id, "state": issue["state"], "assignee": issue["assignee"], "labels": issue["labels"]}

    def comment_on_issue(
        self,
        id: Annotated[int, Field(description="Number of the issue.")],
        text: Annotated[str, Field(description="The comment, in Markdown.", min_length=1)],
    ) -> dict[str, Any]:
        """Add a comment to an issue, visible to everybody who follows it."""
        issue = self._known(id)
        issue["comments"].append(text)
        return {"id": id, "comments": len(issue["comments"])}

    def _known(self, number: int) -> dict[str, Any]:
        if number not in self._issues:
            raise ToolError(f"there is no issue {number}")
        return self._issues[number]
