"""Placeholders in a text: what a program puts words into, and what no translation may change."""

import re
from collections import Counter
from collections.abc import Iterator

# Longer forms come first. A space is a flag of printf too, but "100 % sure" is no %s.
PLACEHOLDER = re.compile(
    r"""
      \{\{[^{}\n]{1,200}\}\}                                    # {{x}}: Mustache, Jinja, Angular
    | \{%[^{}\n]{1,200}%\}                                      # {% tag %}: Jinja
    | \$\{[^{}\n]{1,200}\}                                      # ${x}: JavaScript, shell
    | \#\{[^{}\n]{1,200}\}                                      # #{x}: Ruby
    | %\{[^{}\n]{1,80}\}                                        # %{x}: Ruby, Elixir
    | %\([^()\n]{1,80}\)[-+\#0]*\d*(?:\.\d+)?[diouxXeEfFgGcrsa]   # %(x)s: Python
    | %(?:\d+\$)?[-+\#0]*(?:\*|\d+)?(?:\.(?:\*|\d+))?(?:hh|h|ll|l|L|q|j|z|t)?[diouxXeEfFgGaAcspn@]
                                                                # %s, %1$s, %.2f, %ld, %@
    | %%                                                        # a per cent sign of printf
    | %\d{1,2}(?![\d%])                                         # %1: Qt
    | \{[A-Za-z_0-9][^{}\s]{0,80}\}                             # {0}, {name}, {x:>3}: Python, .NET
    | \{\}                                                      # {}: Python, Rust
    | \[\[[^\[\]\n]{1,80}\]\]                                   # [[x]]
    | \b(?:https?|ftp|file)://[^\s<>"'，。；！？、（）《》“”]*[^\s<>"'，。；！？、（）《》“”.,;:!?)\]]
    | \b[A-Za-z0-9._%+-]+@[A-Za-z0-9-]+(?:\.[A-Za-z0-9-]+)+\b   # an address of mail
    """,
    re.VERBOSE,
)


def placeholders(text: str) -> Iterator[tuple[int, int]]:
    """Where placeholders stand."""
    return (found.span() for found in PLACEHOLDER.finditer(text))


def count_placeholders(text: str) -> Counter[str]:
    """Which placeholders a text has, and how often each."""
    return Counter(found[0] for found in PLACEHOLDER.finditer(text))


def is_placeholder(text: str) -> bool:
    """Whether a text is one placeholder and no more."""
    return PLACEHOLDER.fullmatch(text.strip()) is not None


_MESSAGE = re.compile(r"\{\s*[\w.]+\s*,\s*(?:plural|select|selectordinal|choice)\s*,")


def is_message_format(text: str) -> bool:
    """Whether a text is a program of ICU's, with branches: {n, plural, one {...} other {...}}."""
    return _MESSAGE.search(text) is not None
