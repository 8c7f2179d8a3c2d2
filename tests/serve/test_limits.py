"""Keys, rates and metrics: who may ask, how often, and what is told of it."""

import hashlib

import pytest

from regard.errors import DataError
from regard.serve.keys import Keys, keys_of
from regard.serve.limits import CLIENTS, Rates
from regard.serve.metrics import Histogram, Metrics
from regard.serve.refusals import Refused


def test_without_keys_anybody_is_let_in_with_any_key():
    keys = Keys()
    assert keys.owner(None) is keys.owner("anything") is keys.anybody
    assert not keys.anybody.is_known


def test_only_the_right_key_opens_and_no_key_is_kept():
    keys = keys_of(["open-sesame", "other"], None)
    assert keys.owner("open-sesame").name == "key1"
    assert keys.owner("other").name == "key2"
    for key, message in [
        (None, "this server needs an API key; send the one you were given"),
        ("", "this server needs an API key; send the one you were given"),
        ("open-sesamE", "this API key is not known here; check its spelling"),
        ("\ud800", "this API key is not known here; check its spelling"),
    ]:
        with pytest.raises(Refused) as refused:
            keys.owner(key)
        assert (refused.value.status, refused.value.message) == (403, message)
    assert "open-sesame" not in repr(vars(keys))


def test_every_key_is_compared_whatever_the_first_says(monkeypatch):
    compared = []
    real = __import__("hmac").compare_digest
    monkeypatch.setattr("hmac.compare_digest", lambda a, b: compared.append(1) or real(a, b))
    keys_of(["a", "b", "c"], None).owner("a")
    assert len(compared) == 3


def test_keys_of_a_file_have_names_and_characters(tmp_path):
    file = tmp_path / "keys"
    digest = hashlib.sha256(b"secret").hexdigest()
    file.write_text(f"# mine\n\n{digest} alice 5\n{digest[::-1]}  # of nobody\n")
    owner = keys_of([], file).owner("secret")
    assert (owner.name, owner.chars_limit) == ("alice", 5)
    owner.count(5)
    with pytest.raises(Refused) as refused:
        owner.count(1)
    assert refused.value.status == 456
    assert refused.value.message == "this key has 5 characters, and 5 of them are used"
    assert owner.chars == 5
    file.write_text("plain-secret alice\n")
    with pytest.raises(DataError) as error:
        keys_of([], file)
    assert str(error.value) == (
        f"{file}, line 1 is no key: its sha256 in 64 digits, then maybe a name, then maybe how "
        "many characters it has"
    )


def test_a_rate_is_counted_for_each_client_and_comes_back_in_time():
    clock = [0.0]
    rates = Rates(6, lambda: clock[0])
    for _ in range(6):
        rates.take("a", 1)
    with pytest.raises(Refused) as refused:
        rates.take("a", 1)
    assert (refused.value.status, refused.value.retry_after) == (429, 10)
    assert refused.value.message == (
        "more than 6 a minute are not taken from one client; wait 10 s"
    )
    rates.take("b", 6)
    clock[0] = 10.0
    rates.take("a", 1)
    with pytest.raises(Refused):
        rates.take("a", 1)
    clock[0] = 1000.0
    rates.take("a", 100)  # one that is larger than the rate is taken by who has not asked of late
    with pytest.raises(Refused):
        rates.take("a", 1)
    for number in range(2 * CLIENTS):
        rates.take(str(number), 1)
    assert len(rates.left) == CLIENTS
    Rates(0).take("a", 10**9)


def test_a_histogram_counts_what_is_at_most_each_bound():
    histogram = Histogram((1, 2, 4))
    for value in (0.5, 1, 2, 3, 100):
        histogram.add(value)
    assert list(histogram.lines("x")) == [
        "# TYPE x histogram",
        'x_bucket{le="1"} 2',
        'x_bucket{le="2"} 3',
        'x_bucket{le="4"} 4',
        'x_bucket{le="+Inf"} 5',
        "x_sum 106.500000",
        "x_count 5",
    ]


def test_metrics_are_lines_that_prometheus_reads():
    metrics = Metrics()
    metrics.requests["deepl", 200] += 3
    metrics.now["regard_ready"] = lambda: 1.0
    lines = metrics.text().splitlines()
    assert 'regard_requests_total{protocol="deepl",status="200"} 3' in lines
    assert "regard_ready 1" in lines
    for line in lines:
        name, _, value = line.rpartition(" ")
        assert name
        assert line.startswith("# TYPE ") or float(value) >= 0
