import torch

from regard.decode.greedy import greedy

BOS, EOS = 0, 1


def counting(token, state):
    """Row r writes 2, 3, ... and ends after `lengths[r]` words."""
    place, lengths = state
    logits = torch.zeros(len(token), 10)
    for row, length in enumerate(lengths):
        logits[row, EOS if place == length else 2 + place] = 1.0
    return logits, (place + 1, lengths)


def run(lengths, max_len=20):
    state, cpu = (0, lengths), torch.device("cpu")
    return greedy(counting, state, len(lengths), bos=BOS, eos=EOS, max_len=max_len, device=cpu)


def test_each_row_ends_at_its_own_end():
    assert run([2, 0, 3]) == [[2, 3], [], [2, 3, 4]]


def test_a_row_that_never_ends_stops_at_the_limit():
    assert run([1, 99], max_len=4) == [[2], [2, 3, 4, 5]]


def test_the_first_token_is_bos_and_each_next_the_last_written():
    seen = []

    def step(token, state):
        seen.append(token.tolist())
        return counting(token, state)

    cpu = torch.device("cpu")
    greedy(step, (0, [2]), 1, bos=BOS, eos=EOS, max_len=9, device=cpu)
    assert seen == [[BOS], [2], [3]]
