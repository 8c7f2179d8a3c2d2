import pytest
from hypothesis import given
from hypothesis import strategies as st
from sacremoses import MosesPunctNormalizer

from regard.text.punctuation import moses_punctuation

SIGNS = "„“”‘’‚´`'\"–—…«»()!?:;,.% \u00a0\r1a9zZnº°Cc mé中"
LANGUAGES = ["en", "de", "es", "fr", "cs", "cz", "zh", "eng", ""]


@pytest.mark.parametrize("language", LANGUAGES)
@given(text=st.text(alphabet=SIGNS, max_size=40))
def test_punctuation_is_what_sacremoses_makes_of_it(language, text):
    assert moses_punctuation(text, language) == MosesPunctNormalizer(language).normalize(text)


def test_some_texts_by_hand():
    assert moses_punctuation("„Hallo“ – ‘ja’ …", "de") == "\"Hallo\" - 'ja' ..."
    assert moses_punctuation('He said "no".', "en") == 'He said "no."'
    assert moses_punctuation("1\u00a0000 %", "fr") == "1,000%"
