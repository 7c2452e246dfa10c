"""What a conversation costs: tokens over all of its turns, as providers bill them."""

from __future__ import annotations

from dataclasses import dataclass

CHARS_PER_TOKEN = 4
"""As in `goat-mcp list --tokens`. It is the same for everybody, and only ratios are looked at."""
CACHED_SHARE = 0.1
"""What a cached input token costs, beside one that is not."""
SYSTEM = (
    "You work with tools for the user. Do what is asked, then say so. If the user asked a question, the last line of "
    "what you say is nothing but the answer."
)


def tokens(text: str) -> int:
    return -(-len(text) // CHARS_PER_TOKEN)


@dataclass
class Ledger:
    """One conversation. Each turn sends everything before it again; what the turn before has sent is cached."""

    definitions: int
    """Tokens of the tools that are listed. They come first, and do not change: providers cache them with the rest."""
    history: int = 0
    sent: int = 0
    turns: int = 0
    input_new: int = 0
    input_cached: int = 0
    output: int = 0

    def ask(self, prompt: str) -> None:
        self.history = tokens(SYSTEM) + tokens(prompt)

    def turn(self, output: str, *results: str) -> None:
        """The model reads all there is and writes `output`; `results` are read from the next turn on."""
        whole = self.definitions + self.history
        self.turns += 1
        self.input_cached += self.sent
        self.input_new += whole - self.sent
        self.output += tokens(output)
        self.sent = whole
        self.history += tokens(output) + sum(tokens(result) for result in results)

    @property
    def billed(self) -> float:
        return self.input_new + CACHED_SHARE * self.input_cached + self.output

    @property
    def billed_warm(self) -> float:
        """If the list of tools is in the provider's cache already, from a conversation before."""
        return self.billed - (1 - CACHED_SHARE) * min(self.definitions, self.input_new)
