import pytest
import torch

from regard.train.fetched import Fetched

DEVICES = [
    "cpu",
    pytest.param(
        "cuda", marks=pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
    ),
]


@pytest.mark.parametrize("device", DEVICES)
def test_a_fetched_number_is_the_one_that_was_there_when_it_was_asked_for(device):
    numbers = torch.arange(4.0, device=device)
    fetched = Fetched(numbers.square().sum())
    numbers.zero_()
    assert float(fetched) == 14.0
