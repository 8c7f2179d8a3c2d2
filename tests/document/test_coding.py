"""Bytes to text and back."""

import codecs

import pytest

from regard.document.coding import decoded
from regard.errors import DataError


@pytest.mark.parametrize(
    ("content", "names", "text"),
    [
        ("好".encode(), "nothing", "好"),
        (codecs.BOM_UTF8 + "好".encode(), "nothing", "好"),
        ("好".encode("utf-16"), "nothing", "好"),
        (codecs.BOM_UTF32_BE + "好".encode("utf-32-be"), "nothing", "好"),
        ("<a>好</a>".encode("utf-16-le"), "xml", "<a>好</a>"),
        ('<?xml version="1.0" encoding="GB2312"?><a>好</a>'.encode("gbk"), "xml", None),
        ("<meta charset=big5><p>好".encode("big5"), "html", None),
        (b'msgstr "Content-Type: text/plain; charset=ISO-8859-1\\n"\n"\xe9"', "po", None),
        (b'msgstr "Content-Type: text/plain; charset=CHARSET\\n"', "po", None),
        ('<?xml version="1.0" encoding="utf-16"?><a>好</a>'.encode(), "xml", None),  # it is not
        (b'<?xml version="1.0" encoding="base64"?><a/>', "xml", None),
        (b"", "nothing", ""),
    ],
)  # fmt: skip
def test_a_file_is_read_in_its_encoding_and_gives_the_same_bytes(content, names, text):
    coded = decoded(content, names, "a")
    assert coded.spelled(coded.text) == content
    assert text is None or coded.text == text
    assert "\ufffd" not in coded.text


def test_what_an_encoding_lacks_is_a_reference_in_markup_and_cannot_be_said_elsewhere():
    page = decoded(b"<meta charset=iso-8859-1><p>x", "html", "a")
    assert page.can_say("好")
    assert page.spelled("é好") == b"\xe9&#22909;"
    catalogue = decoded(b'"Content-Type: text/plain; charset=ISO-8859-1\\n"', "po", "a")
    assert catalogue.can_say("é")
    assert not catalogue.can_say("好")


@pytest.mark.parametrize(
    ("content", "names", "message"),
    [
        (
            "这是一个用国标编码的文件。".encode("gbk"),
            "nothing",
            "a.txt is not UTF-8 but looks like GB18030; convert it with iconv -f GB18030 -t UTF-8",
        ),
        (
            b'<?xml version="1.0" encoding="shift_jis"?><a>\xff\xff</a>',
            "xml",
            "a.txt cannot be read as shift_jis: illegal multibyte sequence; convert it to UTF-8, "
            "and say so where it names its encoding",
        ),
        (
            '<?xml version="1.0" encoding="iso-2022-jp"?><a>あ\x1b$B</a>'.encode("iso-2022-jp"),
            "xml",
            "a.txt is in iso2022_jp, which spells one text in several ways; convert it to UTF-8",
        ),
    ],
)
def test_what_cannot_be_read_or_not_be_written_again_is_refused(content, names, message):
    with pytest.raises(DataError) as refused:
        decoded(content, names, "a.txt")
    assert str(refused.value) == message
