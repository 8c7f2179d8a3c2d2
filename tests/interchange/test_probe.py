import pytest

from regard.config import ModelConfig
from regard.errors import ModelError
from regard.interchange.carried import Carried, write_regard
from regard.interchange.probe import PROBE, check_probe, check_same, probed
from regard.text.normalize import Normalizer
from regard.text.tokenizer import CharTokenizer, train_tokenizer
from regard.text.vocab import Vocabulary


def chars(pieces):
    special = ("<pad>", "<s>", "</s>", "<unk>")
    return CharTokenizer(
        Vocabulary((*special, *pieces), pad=0, bos=1, eos=2, unk=3), Normalizer()
    )  # fmt: skip


def test_any_change_of_a_normaliser_shows():
    vocab = train_tokenizer([PROBE] * 3, kind="char", size=400).vocab
    settings = ({}, {"form": "nfkc"}, {"width": "half"}, {"han": "simplified"})
    made = [CharTokenizer(vocab, Normalizer(**one)) for one in settings]
    assert len({tuple(one.encode(PROBE)) for one in made}) == 4


@pytest.mark.parametrize(("place", "side"), [(0, "source"), (1, "target")])
def test_the_side_whose_ids_are_others_is_named(place, side):
    one, other = chars("abde"), chars("bade")
    pair = [one, one]
    pair[place] = other
    expected = f"the {side} tokenizer is not what it was: a fixed text has other ids now"
    with pytest.raises(ModelError) as caught:
        check_same((pair[0], pair[1]), (one, one))
    assert str(caught.value) == expected
    with pytest.raises(ModelError) as caught:
        check_probe((pair[0], pair[1]), {"probe": probed((one, one))})
    assert str(caught.value) == expected
    check_probe((pair[0], pair[1]), {})
    check_probe((pair[0], pair[1]), {"probe": probed((pair[0], pair[1]))})


class Forgetful(CharTokenizer):
    """Saves another tokenizer than it is."""

    def save(self, directory):
        chars("bade").save(directory)


def test_a_tokenizer_that_changes_on_its_way_to_disk_leaves_nothing_there(tmp_path):
    made = Forgetful(chars("abde").vocab, Normalizer())
    model = Carried(ModelConfig(), made, made, {}, {}, "")
    with pytest.raises(ModelError) as caught:
        write_regard(model, tmp_path / "model", "float32")
    assert str(caught.value) == (
        "the source tokenizer is not what it was: a fixed text has other ids now"
    )
    assert list(tmp_path.iterdir()) == []
