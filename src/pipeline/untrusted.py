"""Text from papers and queries is untrusted: it may not leave its place in a prompt, and attempts are reported."""

from __future__ import annotations

import html
import re
import unicodedata

#: Marks of roles and turns in the chat templates of common models, such as [INST].
_TEMPLATE_MARK = re.compile(r"\[(/?[A-Z][A-Z_]+)\]")

#: Phrases that talk to a reviewing model rather than to a reader.
_INSTRUCTION = re.compile(
    r"\b(?:ignore|disregard|forget|override)\b.{0,40}\b(?:above|previous|prior|earlier|instructions?|prompts?|rules)\b"
    r"|\b(?:return|give|assign|output|answer|respond|reply|rate)\b.{0,30}\b(?:grade|score|category|rating)\b\W*"
    r"(?:of\W+|is\W+|=\W*)?(?:[0-9]\b|highly)"
    r"|\b(?:positive|favou?rable) (?:review|verdict|rating)s? only\b|\bgive (?:a|only) positive review"
    r"|\b(?:as|you are) an? (?:ai|llm|(?:large )?language model|assistant)\b.{0,60}\b(?:you|must|should|rate|review)\b"
    r"|\bsystem prompt\b|<\|\w{1,40}\|>|<</?SYS>>|</?(?:system|assistant|user|paper|query)>"
    r"|\[/?(?:INST|SYSTEM_PROMPT)\]",
    re.IGNORECASE,
)

_SOFT_HYPHEN = "\u00ad"  # cannot be seen either, but is common and means no harm
_SHOWN = 80  # characters of a suspicious phrase


def fenced(text: str) -> str:
    """Return the text as one line that can close no tag, open no role and hide nothing.

    White space becomes single blanks, invisible characters go, ``<``, ``>`` and ``&`` become HTML entities, and marks
    of chat templates lose their brackets.
    """
    one_line = " ".join(fold_hidden(text).split())
    return html.escape(_TEMPLATE_MARK.sub(r"(\1)", one_line), quote=False)


def fold_hidden(text: str) -> str:
    """Return the text without what cannot be seen."""
    return "".join(character for character in text if not _is_hidden(character) and character != _SOFT_HYPHEN)


def instruction_like(text: str) -> str | None:
    """Return what in this text looks like an instruction to the model, with hidden characters made visible, or None."""
    visible = "".join(f"[U+{ord(c):04X}]" if _is_hidden(c) else c for c in text)
    hidden = re.search(r"\[U\+[0-9A-F]+\]", visible) if visible != text else None
    plain = fold_hidden(text)
    found = _INSTRUCTION.search(" ".join(plain.split()))
    if found:
        return found.group()[:_SHOWN] + (f" (hidden: {hidden.group()})" if hidden else "")
    return f"hidden characters: {visible[hidden.start() : hidden.start() + _SHOWN]}" if hidden else None


def _is_hidden(character: str) -> bool:
    """Whether the character has no glyph and is no white space: format and control characters, tags, surrogates."""
    return (
        character == "\u034f"
        or "\ufe00" <= character <= "\ufe0f"
        or "\U000e0100" <= character <= "\U000e01ef"
        or (
            unicodedata.category(character) in {"Cf", "Cc", "Cs", "Co"}
            and not character.isspace()
            and character != _SOFT_HYPHEN
        )
    )
