"""A trained model by CTranslate2: as by torch, nearly so in int8, and without torch."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from regard.bundle import open_bundle
from regard.decode.engines.ctranslate2 import CTranslate2Engine
from regard.decode.engines.torch import torch_engine
from regard.decode.search import Search, Sentence

TATOEBA = Path(__file__).parents[1] / "models" / "tatoeba-zh-en"
TEXTS = [
    "我喜欢吃苹果。", "你今天去哪里？", "他昨天没有来上班，因为他病了。", "谢谢。",
    "请把门关上。", "这本书是谁写的？", "我不知道他什么时候会回来。", "她正在学习英语。",
    "明天会下雨吗？", "我们去看电影吧。", "他比我高。", "火车几点开？", "我的钥匙不见了。",
    "请问洗手间在哪里？", "汤姆决定不去波士顿了。", "如果你有时间，请给我打电话。",
    "我从来没有去过北京。", "这太贵了。", "你能帮我一个忙吗？", "别担心。",
    "他们住在一个小村子里。", "我认为你是对的。", "猫在桌子下面睡觉。", "昨天晚上你做了什么？",
    "她唱歌唱得很好。", "我得早点起床。", "没有人知道答案。", "这里禁止吸烟。", "我哥哥是医生。",
    "你想喝茶还是咖啡？", "我刚刚吃过午饭。", "他什么也没说就离开了房间。", "今天的天气真好！",
    "你应该多吃蔬菜。", "我把钱包忘在家里了。", "孩子们在公园里玩。", "这个问题比我想象的要难。",
    "请再说一遍。", "我等了他两个小时。", "世界上有很多种语言。",
]  # fmt: skip


@pytest.fixture(scope="module", autouse=True)
def caching(tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("REGARD_CACHE", str(tmp_path_factory.mktemp("cache")))
        yield


@pytest.fixture(scope="module")
def bundle():
    return open_bundle(TATOEBA)


@pytest.fixture(scope="module")
def engine(bundle):
    return CTranslate2Engine(bundle)


@pytest.fixture(scope="module")
def read(bundle):
    tokenizer = bundle.src_tokenizer
    return [Sentence((*tokenizer.encode(text), tokenizer.vocab.eos)) for text in TEXTS]


def test_a_trained_model_says_the_same_as_in_torch(bundle, engine, read):
    expected = torch_engine([bundle], torch.device("cpu")).search(read, Search())
    found = engine.search(read, Search())
    assert [own[0].ids for own in found] == [own[0].ids for own in expected]
    for one, other in zip(found, expected, strict=True):
        assert one[0].score == pytest.approx(other[0].score, abs=1e-4)


def test_int8_says_nearly_the_same(bundle, engine, read):
    exact = engine.search(read, Search())
    small = CTranslate2Engine(bundle, "int8").search(read, Search())
    same = [one[0].ids == other[0].ids for one, other in zip(exact, small, strict=True)]
    assert sum(same) > 0.8 * len(same)


def test_a_model_from_the_cache_translates_without_torch(bundle, engine, read):
    script = f"""
import sys
from pathlib import Path

class NoTorch:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] == "torch":
            raise ImportError("torch was asked for")

sys.meta_path.insert(0, NoTorch())
from regard.bundle import open_bundle
from regard.decode.engines.ctranslate2 import CTranslate2Engine
from regard.decode.search import Search, Sentence

engine = CTranslate2Engine(open_bundle(Path({str(TATOEBA)!r})))
[[found]] = engine.search([Sentence({read[0].ids})], Search())
print(found.ids)
assert not {{"torch", "ctranslate2.specs"}} & set(sys.modules)
"""
    result = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, env=os.environ, check=False
    )
    assert (result.returncode, result.stderr) == (0, "")
    [[found]] = engine.search(read[:1], Search())
    assert result.stdout.strip() == str(found.ids)
