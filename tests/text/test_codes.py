import pickle

import pytest

from regard.errors import ModelError
from regard.text.codes import CodeTokenizer, code_tokenizer, read_codes
from regard.text.normalize import Normalizer
from regard.text.tokenizer import Tokenizer, load_tokenizer
from regard.text.vocab import Vocabulary

PIECES = (
    "<s>",
    "<pad>",
    "</s>",
    "<unk>",
    "lo@@",
    "w",
    "low",
    "e@@",
    "r",
    "er",
    "l@@",
    "o@@",
    "w@@",
)
VOCAB = Vocabulary(PIECES, pad=1, bos=2, eos=2, unk=3)
NEW = b"#version: 0.2\nl o\nlo w</w>\ne r</w>\n"


def tokenizer(codes=NEW):
    return CodeTokenizer(codes, VOCAB, Normalizer(form="none"))


@pytest.mark.parametrize(
    ("codes", "pieces"),
    [
        (NEW, "low lo@@ w@@ er"),
        (b"l o 90\nlo w</w> 80\ne r</w> 70\n", "low lo@@ w@@ er"),  # fastBPE's, with counts
        # The first version: an end is a symbol of its own, and joins the word by a merge.
        (b"l o\nlo w\nlow </w>\nr </w>\ne r</w>\n", "low low@@ er"),
        (b"e r</w> 9\nl o 8\n", "lo@@ w lo@@ w@@ er"),
        (b"", "low lower"),
    ],
)
def test_merges_are_applied_the_best_first(codes, pieces):
    assert " ".join(tokenizer(codes).pieces("low  lower\n")) == pieces


def test_every_pair_of_a_kind_is_merged_at_once():
    made = CodeTokenizer(b"#version: 0.2\na b\nab ab\n", VOCAB, Normalizer())
    assert made.pieces("ababx") == ["abab@@", "x"]
    assert made.pieces("aabab") == ["a@@", "ab@@", "a@@", "b"]  # the last b ends the word


def test_ids_are_the_vocabularys_and_what_it_has_not_is_unknown():
    made = tokenizer()
    assert made.encode("low lower xy") == [6, 4, 12, 9, 3, 3]
    assert made.decode([6, 4, 12, 9, 2, 1]) == "low lower"
    assert made.decode([4, 3]) == "lo⁇"
    assert made.decode([6, 4]) == "low lo"
    assert made.uncovered("low xy") == 2
    assert made.sample("low", (1,)) == made.encode("low")
    assert made.encode_all(["low", ""]) == [[6], []]
    assert isinstance(made, Tokenizer)


def test_what_is_saved_is_read_again(tmp_path):
    made = tokenizer()
    made.save(tmp_path)
    for again in (load_tokenizer(tmp_path), pickle.loads(pickle.dumps(made))):
        assert again.pieces("low lower") == made.pieces("low lower")
        assert again.vocab == made.vocab


def test_the_first_of_two_equal_merges_counts():
    assert read_codes(b"#version: 0.2\na b\nc d\na b\n")[0] == {("a", "b"): 0, ("c", "d"): 1}


@pytest.mark.parametrize("codes", [b"lonely\n", b"a b 3 4\n", b"a  b\n", b"\xff\xfe a\n"])
def test_a_line_that_is_no_merge_is_refused(codes, tmp_path):
    with pytest.raises(ModelError) as caught:
        code_tokenizer(tmp_path / "codes", codes, VOCAB, Normalizer())
    assert str(caught.value) == (
        f"{tmp_path / 'codes'} holds no byte-pair codes: a line is two symbols with a space between"
    )
