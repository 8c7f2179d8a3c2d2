"""Texts on their way back: each is put together as soon as the last of its sentences is found."""

from collections import Counter, defaultdict
from collections.abc import Sequence
from functools import cached_property

from regard.decode.results import Translation
from regard.decode.search import Found
from regard.decode.wording import Asked, Wording


class Answers:
    """The translations of what was asked, made while a search goes on."""

    def __init__(self, wording: Wording, asked: Sequence[Asked]) -> None:
        self.wording, self.asked = wording, asked
        self.heard: dict[int, dict[int, Found]] = defaultdict(dict)  # by text and sentence
        self.translations: dict[int, Translation] = {}

    def hear(self, number: int, found: Found) -> None:
        """What was found for a sentence."""
        text = self._texts[number]
        heard = self.heard[text]
        heard[number] = found
        if len(heard) == self._sizes[text]:
            own = iter([heard[number] for number in sorted(heard)])
            self.translations[text] = self.wording.translation(self.asked[text], own)

    def all(self) -> list[Translation]:
        """Those of all texts in order, when all of their sentences were heard of."""
        for text, one in enumerate(self.asked):
            if text not in self._sizes:  # it is blank
                self.translations[text] = self.wording.translation(one, iter(()))
        return [self.translations[text] for text in range(len(self.asked))]

    # Both are worked out when something is heard, for then the search has begun.

    @cached_property
    def _texts(self) -> list[int]:
        """The text of each sentence."""
        return [
            text
            for text, one in enumerate(self.asked)
            for sentence in one.sentences
            if sentence is not None
        ]

    @cached_property
    def _sizes(self) -> Counter[int]:
        """How many sentences each text has, if any."""
        return Counter(self._texts)
