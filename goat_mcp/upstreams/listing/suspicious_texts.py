"""Texts in definitions that look like an attack on who reads them: orders to a model, key files, secrets to be kept.

They are reported before somebody trusts the definition, and change nothing else: what a text says never moves a
decision. Honest texts must not be reported: a warning that is often wrong is read by nobody.
"""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, cast

from goat_mcp.core.names import SEPARATOR, UPSTREAM_PREFIX
from goat_mcp.files.documents.visible_text import drop_hidden, hides_something, make_visible

MAX_CHARS = 200_000
"""Of one definition; what comes after them is not looked at."""
MAX_MENTIONS = 20
HIDES = "hides characters"
_TAGS = re.compile(r"[\U000e0020-\U000e007e]|\\U000e00([2-7][0-9a-f])")
_ESCAPES = re.compile(
    r"\x1b\[[0-9;]*[A-Za-z]|\\(?:x(?:1b\[[0-9;]*[A-Za-z]|[01][0-9a-f]|7f|ad)|u[0-9a-f]{4}|U000[0-9a-f]{5})"
)
_MARKS = str.maketrans("", "", "*`\"'\u2018\u2019\u201c\u201d")
# Letters of other scripts that look like Latin ones.
_LOOKALIKES = str.maketrans(
    "\u0430\u0435\u043e\u0440\u0441\u0443\u0445\u0456\u0455\u0458\u04bb\u0501\u051b\u051d\u03bf\u03b1\u03bd\u03b9\u0131",
    "aeopcyxisjhdqwoavii",
)
_PERSON = r"(?:the )?(?:user|human|person|operator|owner)s?\b"
_NOT = (
    r"\b(?:do not|dont|never|must not|mustnt|should not|shouldnt|may not|cannot|avoid|without|no need to|refrain from)"
)
_NEGATIONS = "not |dont|never|mustnt|shouldnt|cannot|avoid|without|no need|refrain"
_TELL = (
    r"(?:tell|inform|mention|reveal|notify|disclose|alert|warn|let|telling|informing|mentioning|revealing|notifying|"
    r"disclosing|alerting|warning|letting)"
)
_WHAT = r"(?:instruction|prompt|direction|guideline|directive)s?\b"
_TEXTS: Mapping[str, tuple[tuple[str, str], ...]] = {
    "gives orders to the model": (
        (
            "ignore|disregard|forget|override|bypass|discard",
            rf"\b(?:ignore|disregard|forget|override|bypass|discard)\b(?: \S+){{0,4}}? (?:previous|prior|above|earlier|"
            rf"preceding|existing|original|initial|system|your|all|any|other)\b(?: \S+){{0,4}}? {_WHAT}",
        ),
        ("<", r"<[/! -]{0,4}(?:important|system|secret|hidden|instructions?|admin|sys|assistant)\b[^<>]{0,40}>"),
        ("[|<", r"\[/?(?:inst|system|admin)\]|<\|(?:im_start|im_end|system|assistant|user)\|>|<<sys>>"),
        (
            "instructions|prompt|override",
            r"\b(?:new|updated|real|actual|secret|hidden) (?:system )?(?:instructions|prompt) ?:"
            r"|\bsystem (?:override|prompt ?:)",
        ),
        (
            "you are now",
            r"\byou are now (?:in |a |an )?(?:developer|admin|root|dan|unrestricted|jailbroken|debug|god)\b",
        ),
        (
            "secret|credential|password|private key|api key|token|.ssh|.env|keychain|id_",
            r"\b(?:before|prior to|after|when|whenever) (?:\S+ ){1,6}?(?:tool|function|call|request|anything)\b"
            r"[^.]{0,60}\b(?:read|open|cat|upload|load|dump|send|exfiltrate|copy)\b[^.]{0,60}"
            r"(?:secret|credential|password|private key|api key|token|\.ssh|\.env\b|keychain|id_[a-z])",
        ),
        (
            "secret|credential|password|private key|environment variable|history|system prompt",
            r"\b(?:pass|send|include|append|forward|attach|paste|copy|leak|post|transmit)\b[^.]{0,80}(?:secret|credential|"
            r"password|private key|environment variable|conversation history|chat history|system prompt)[^.]{0,60}"
            r"\b(?:as|in|into|to|with|via)\b[^.]{0,30}"
            r"(?:parameter|argument|field|sidenote|notes?\b|context|https?:|attacker|this tool|url|header)",
        ),
        ("exfiltrat", r"\bexfiltrat"),
    ),
    "wants something concealed": (
        (_NEGATIONS, rf"{_NOT} (?:\S+ ){{0,2}}?{_TELL} (?:\S+ ){{0,6}}?{_PERSON}"),
        (
            _NEGATIONS,
            rf"{_NOT} (?:\S+ ){{0,2}}?(?:show|display|explain)(?:ing)? (?:this|it|these|that|any of this) "
            rf"(?:\S+ ){{0,2}}?to {_PERSON}",
        ),
        (
            "anyone|anybody",
            rf"{_NOT} (?:\S+ ){{0,2}}?(?:tell|mention|inform|reveal|telling|mentioning)\b(?: \S+){{0,3}}? "
            rf"(?:anyone|anybody)\b",
        ),
        ("nobody|no one|noone", r"\b(?:tell|inform) (?:nobody|no one|noone)\b"),
        ("hide|conceal|keep", rf"\b(?:hide|conceal|keep)\b(?: \S+){{0,5}}? from {_PERSON}"),
        (
            "not |nt |never ",
            rf"{_PERSON} (?:\S+ ){{0,1}}?(?:must not|should not|need not|does not need to|doesnt need to|must never|"
            rf"should never|may not|mustnt|shouldnt) (?:\S+ ){{0,1}}?"
            rf"(?:know|see|notice|learn|be told|be aware|be informed)",
        ),
        (
            "without|behind",
            rf"\bwithout {_PERSON} (?:knowing|noticing|knowledge|awareness|consent|seeing)"
            rf"|\bwithout the knowledge of {_PERSON}|\bbehind {_PERSON} back",
        ),
        (
            "secretly|covertly|quietly|silently",
            r"\b(?:secretly|covertly|quietly|silently) (?:\S+ ){0,1}?(?:send|read|copy|forward|include|append|pass|"
            r"upload|add|bcc|cc|call|run|execute|post|collect)\b",
        ),
        (
            "keep ",
            r"\bkeep (?:this|it|these instructions) (?:\S+ ){0,2}?(?:secret|hidden|confidential|to yourself)\b",
        ),
    ),
    "names key files": (
        (
            ".ssh|id_|authorized_keys|.aws|.netrc|.pypirc|.gnupg",
            r"\.ssh\b|\bid_(?:rsa|dsa|ecdsa|ed25519)\b|\bauthorized_keys\b|\.aws/credentials|\.netrc\b|\.pypirc\b|\.gnupg\b",
        ),
        (
            "/etc/|.kube|.docker|.git-cred|.config/gcloud",
            r"/etc/(?:passwd|shadow|sudoers)\b|\.kube/config\b|\.docker/config\.json|\.git-credentials\b"
            r"|\.config/gcloud\b",
        ),
        (
            ".json|history|wallet.dat",
            r"\.cursor/mcp\.json|claude_desktop_config\.json|\.claude\.json|\.(?:bash|zsh)_history\b|\bwallet\.dat\b",
        ),
        (
            ".env",
            r"\b(?:read|send|cat|contents?|secrets?|pass|include)\b[^.]{0,40}[\s/(]\.env\b(?!\.)"
            r"|[\s/(]\.env [^.]{0,40}\b(?:contents?|secrets?|read|send|pass)\b",
        ),
        ("private key", r"begin (?:rsa |openssh |ec )?private key"),
    ),
    "wants to steer the use of other tools": (
        (
            "tool",
            r"\b(?:before|after|when|whenever|while|each time|every time)(?: \S+){0,3}? (?:any|every|each|all)"
            r"(?: of the)?(?: other)?(?: mcp)? tools?\b",
        ),
        (
            "other |another |built",
            r"\b(?:instead of|rather than|never use|do not use|dont use|stop using|disable)(?: \S+){0,2}? (?:any other|"
            r"all other|other|the built-?in|another servers?)(?: \S+){0,2}? (?:tools?|servers?)\b",
        ),
        (
            "other ",
            r"\b(?:behaviou?r|outputs?|results?|arguments|parameters|calls?) (?:of|to|from) (?:the |any |all |every )?"
            r"(?:other|another)(?: mcp)? (?:tools?|servers?)\b",
        ),
    ),
}
"""For each thing that may be the matter: patterns, and before each the words of which one must be there, for speed."""
_PATTERNS = [
    (what, tuple(words.split("|")), re.compile(pattern)) for what, texts in _TEXTS.items() for words, pattern in texts
]
_CANONICAL = re.compile(rf"\b{UPSTREAM_PREFIX}([A-Za-z0-9-]+(?:_[A-Za-z0-9-]+)*){SEPARATOR}[A-Za-z0-9_-]+")


def why_suspicious(definition: Any, server: str = "") -> tuple[str, ...]:
    """What in a definition of `server` a person should read before trusting it, in a few words each; empty as a rule.

    The definition may be as its upstream sent it, or with what hides in it made visible.
    """
    try:
        text = _joined(definition)[:MAX_CHARS]
        found = [HIDES] if hides_something(definition) or _TAGS.search(text) else []
    except RecursionError:
        return ("is nested too deeply to be looked at",)
    return (*found, *_said_in(text, server))


def are_unsuspicious(definitions: Sequence[Any], server: str) -> bool:
    """Whether one look at all of them together shows that `why_suspicious` finds nothing in any. Most are so."""
    try:
        text = _joined(definitions)
    except RecursionError:
        return False
    is_seen_whole = len(text) <= MAX_CHARS and make_visible(text) is text and not _TAGS.search(text)
    return is_seen_whole and not _said_in(text, server)


def _said_in(text: str, server: str) -> list[str]:
    plain = _plain(text)
    found: list[str] = []
    for what, words, pattern in _PATTERNS:
        if what not in found and any(word in plain for word in words) and pattern.search(plain):
            found.append(what)
    if server and any(mention[1] != server for mention in _CANONICAL.finditer(text)):
        found.append("names a tool of another server")
    return found


def _joined(definition: Any) -> str:
    return "\n".join(_texts(definition))


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, list):
        for one in cast("list[Any]", value):
            yield from _texts(one)
    elif isinstance(value, Mapping):
        for name, one in cast("Mapping[str, Any]", value).items():
            yield name
            yield from _texts(one)


def _plain(text: str) -> str:
    """Small letters and single blanks, with nothing hidden, nothing that only looks like a letter, and no quotes."""
    if not text.isascii() or "\\" in text:
        text = drop_hidden(_ESCAPES.sub("", _TAGS.sub(_letter, text)))
        text = unicodedata.normalize("NFKC", text).casefold().translate(_LOOKALIKES)
    return " ".join(text.lower().translate(_MARKS).split())


def _letter(tag: re.Match[str]) -> str:
    return chr(int(tag[1], 16)) if tag[1] else chr(ord(tag[0]) - 0xE0000)


def cross_server_references(server: str, entries: Iterable[Mapping[str, Any]]) -> tuple[str, ...]:
    """`tool: mcp__other__name` for each mention in the entries of `server`, at most `MAX_MENTIONS`."""
    found: dict[str, None] = {}
    for entry in entries:
        texts = json.dumps([entry.get(part) for part in ("title", "description", "inputSchema")])
        if UPSTREAM_PREFIX not in texts:
            continue
        for mention in _CANONICAL.finditer(texts):
            if mention[1] != server:
                found[f"{entry.get('name')}: {mention[0]}"] = None
                if len(found) == MAX_MENTIONS:
                    return tuple(found)
    return tuple(found)
