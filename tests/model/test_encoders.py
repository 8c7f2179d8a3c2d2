"""Three encoders of one interface: what holds for all, and for the two that do not attend."""

import pytest
import torch
from torch import nn

from regard.attention import Packed, Padded
from regard.attention.masks import encoder_mask
from regard.errors import ConfigError
from regard.model import Encoder, EncoderLayer
from regard.model.convolutional import ConvolutionalEncoder, ConvolutionLayer
from regard.model.recurrent_encoder import RecurrentEncoder

D = 8
ENCODERS = {
    "attention": lambda: Encoder([EncoderLayer(D, 2, 16) for _ in range(2)], nn.Identity()),
    "convolution": lambda: ConvolutionalEncoder(
        [ConvolutionLayer(D, 3) for _ in range(2)], nn.Identity()
    ),
    "pre-norm convolution": lambda: ConvolutionalEncoder(
        [ConvolutionLayer(D, 5, norm="pre")], nn.LayerNorm(D)
    ),
    "recurrence": lambda: RecurrentEncoder(D, 2),
}


@pytest.fixture(params=ENCODERS)
def encoder(request):
    torch.manual_seed(1)
    return ENCODERS[request.param]().eval()


def test_a_sentence_alone_equals_the_sentence_in_a_batch(encoder):
    rows, lens = torch.randn(3, 7, D), torch.tensor([4, 7, 1])
    together = encoder(rows, encoder_mask(Padded(lens), 7)).output
    for row, length, output in zip(rows, lens, together, strict=True):
        torch.testing.assert_close(output[:length], encoder(row[None, :length]).output[0])


def test_what_lies_in_the_padding_changes_nothing(encoder):
    rows, mask = torch.randn(2, 6, D), encoder_mask(Padded(torch.tensor([3, 6])), 6)
    filled = rows.clone()
    filled[0, 3:] = 100.0
    torch.testing.assert_close(
        encoder(filled, mask).output[0, :3], encoder(rows, mask).output[0, :3]
    )


def test_packed_rows_give_what_padded_ones_give(encoder):
    lens = [3, 5, 2]
    sentences = [torch.randn(n, D) for n in lens]
    src = Packed.of(lens, n_tokens=12, n_slots=4, max_len=5)
    packed = encoder(torch.cat([*sentences, torch.zeros(2, D)]), encoder_mask(src, 12)).output
    alone = torch.cat([encoder(one[None]).output[0] for one in sentences])
    torch.testing.assert_close(packed[:10], alone)


def test_weights_are_what_only_attention_has(encoder):
    encoded = encoder(torch.randn(1, 4, D), wants_weights=True)
    assert bool(encoded.weights) == isinstance(encoder, Encoder)


def reach(encoder, n=15):
    """How far from the middle the output's gradient goes, to the left and to the right."""
    x = torch.randn(1, n, D, requires_grad=True)
    (encoder(x).output[0, n // 2] @ torch.randn(D)).backward()
    seen = x.grad[0].abs().amax(-1).nonzero()[:, 0]
    return n // 2 - int(seen.min()), int(seen.max()) - n // 2


@pytest.mark.parametrize(
    ("kernel", "n_layers", "far"), [(1, 3, 0), (3, 1, 1), (3, 4, 4), (5, 2, 4)]
)
def test_convolutions_see_half_their_width_for_each_layer_and_no_further(kernel, n_layers, far):
    layers = [ConvolutionLayer(D, kernel) for _ in range(n_layers)]
    assert reach(ConvolutionalEncoder(layers, nn.Identity()).eval()) == (far, far)


@pytest.mark.parametrize("name", ["attention", "recurrence"])
def test_the_others_see_all_at_once(name):
    assert reach(ENCODERS[name]().eval()) == (7, 7)


def test_a_convolution_is_torchs_in_a_residual_with_its_norm():
    layer, x = ConvolutionLayer(D, 3).eval(), torch.randn(2, 5, D)
    inside = layer.convolution(x.transpose(1, 2)).relu().transpose(1, 2)
    torch.testing.assert_close(layer(x), layer.residual.norm(x + inside))


@pytest.mark.parametrize("kernel", [0, 2, -1])
def test_an_even_kernel_is_refused(kernel):
    with pytest.raises(ConfigError) as failure:
        ConvolutionLayer(D, kernel)
    assert str(failure.value) == (
        f"kernel = {kernel} must be odd, so that a token has as many neighbours on either side"
    )
