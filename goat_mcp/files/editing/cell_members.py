"""A cell's members taken apart, changed one by one and put together again with every other byte as it was."""

from __future__ import annotations

from dataclasses import dataclass, replace

from goat_mcp.files.editing.json_spans import JsonObject


@dataclass(frozen=True, slots=True)
class _Member:
    """One member with the blanks around it."""

    lead: str
    key: str
    name: str
    value: str
    trail: str

    @property
    def text(self) -> str:
        return self.lead + self.name + self.value + self.trail


class CellMembers:
    """The members of one object. `name` is a key with its colon, as the text has it."""

    def __init__(self, text: str, fields: JsonObject) -> None:
        self._empty = text[fields.start + 1 : fields.end - 1]
        self._members = [
            _Member(
                text[member.lead : member.start],
                member.key,
                text[member.start : member.value_start],
                text[member.value_start : member.end],
                text[member.end : member.after],
            )
            for member in fields.members
        ]

    @property
    def text(self) -> str:
        return f"{{{','.join(member.text for member in self._members) or self._empty}}}"

    def get(self, key: str) -> str | None:
        """The text of the value that counts."""
        return next((member.value for member in reversed(self._members) if member.key == key), None)

    def set(self, key: str, value: str) -> None:
        """Give the last member of that name another value; nothing where there is none."""
        for place in reversed(range(len(self._members))):
            if self._members[place].key == key:
                self._members[place] = replace(self._members[place], value=value)
                return

    def add(self, key: str, name: str, value: str, between: str) -> None:
        """Put in a member where the alphabet wants it: so nbformat sorts them."""
        members = self._members
        place = next((place for place, member in enumerate(members) if member.key > key), len(members))
        if not members:
            members.append(_Member(self._empty, key, name, value, ""))
        elif place == 0:
            members[:1] = [_Member(members[0].lead, key, name, value, ""), replace(members[0], lead=between)]
        elif place < len(members):
            members.insert(place, _Member(between, key, name, value, ""))
        else:
            last = members[-1]
            members[-1:] = [replace(last, trail=""), _Member(between, key, name, value, last.trail)]

    def drop(self, key: str) -> bool:
        """Take out every member of that name. Whether there was one."""
        kept = [member for member in self._members if member.key != key]
        if len(kept) == len(self._members):
            return False
        if kept:
            kept[0] = replace(kept[0], lead=self._members[0].lead)
            kept[-1] = replace(kept[-1], trail=self._members[-1].trail)
        self._members = kept
        return True
