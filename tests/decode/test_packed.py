import pytest
import torch
from torch import nn

from regard.config import ModelConfig
from regard.decode.engines.packed import PackedLinear, can_pack, pack
from regard.model.build import build_model

pytestmark = pytest.mark.skipif(
    not can_pack(torch.device("cpu")), reason="this torch is built without oneDNN"
)


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("shape", [(1, 24), (7, 24), (3, 5, 24), (2, 1, 24), (0, 24)])
def test_a_packed_layer_gives_the_same_numbers(shape, bias):
    linear, x = nn.Linear(24, 10, bias=bias), torch.randn(shape)
    with torch.inference_mode():
        torch.testing.assert_close(PackedLinear(linear)(x), linear(x))


def test_rows_that_do_not_lie_together_are_read_where_they_lie():
    linear, x = nn.Linear(24, 10), torch.randn(4, 3, 24)
    with torch.inference_mode():
        for rows in (x[:, 1], x.transpose(0, 1), x[:, :, :24].flip(0)):
            torch.testing.assert_close(PackedLinear(linear)(rows), linear(rows))


@pytest.mark.parametrize("kind", ["transformer", "recurrent"])
def test_a_packed_network_says_the_same(kind):
    config = ModelConfig(kind=kind, d_model=16, n_layers=2, n_heads=2, d_ff=32, max_len=16)
    network = build_model(config, 12, 12).eval()
    ids = torch.randint(0, 12, (3, 7)), torch.randint(0, 12, (3, 5))
    with torch.inference_mode():
        expected, explained = network(*ids), network.explain(*ids).cross
        pack(network)
        torch.testing.assert_close(network(*ids), expected, rtol=1e-4, atol=1e-5)
        torch.testing.assert_close(network.explain(*ids).cross, explained, rtol=1e-4, atol=1e-5)
    assert not any(isinstance(module, nn.Linear) for module in network.modules())


def test_there_is_no_such_layout_on_a_gpu():
    assert not can_pack(torch.device("cuda"))
