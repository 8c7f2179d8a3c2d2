"""Only processors that this process may use are counted; chips are told apart, and their makers."""

import os
import platform

import pytest

from regard import processors
from regard.processors import is_intels, n_processors, processor_name

EPYC = "processor\t: {n}\nvendor_id\t: AuthenticAMD\ncpu family\t: 26\nmodel\t\t: {model}\n"
EPYC += "model name\t: AMD EPYC\nflags\t\t: fpu avx512f\npower management:\n\n"
ARM = "processor\t: 0\nBogoMIPS\t: 50.00\nCPU implementer\t: 0x41\nCPU part\t: 0xd40\n"


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="the system does not say")
def test_processors_that_others_have_are_not_counted():
    allowed = os.sched_getaffinity(0)
    try:
        os.sched_setaffinity(0, {min(allowed)})
        assert n_processors() == 1
    finally:
        os.sched_setaffinity(0, allowed)
    assert n_processors() == len(allowed)


def test_where_the_system_does_not_say_all_are(monkeypatch):
    monkeypatch.delattr(os, "sched_getaffinity", raising=False)
    monkeypatch.setattr(os, "cpu_count", lambda: 12)
    assert n_processors() == 12


@pytest.mark.parametrize(
    ("told", "name"),
    [
        (EPYC.format(n=0, model=2), "AMD EPYC (cpu family 26, model 2)"),
        (EPYC.format(n=0, model=17) + EPYC.format(n=1, model=17),
         "AMD EPYC (cpu family 26, model 17)"),
        (ARM, f"{platform.machine()} (CPU implementer 0x41, CPU part 0xd40)"),
        ("bogomips\t: 50\n", platform.machine()),
    ],
)  # fmt: skip
def test_a_chip_is_named_with_the_numbers_that_tell_it_from_others(
    monkeypatch, tmp_path, told, name
):
    monkeypatch.setattr(processors, "TOLD", tmp_path / "cpuinfo")
    (tmp_path / "cpuinfo").write_text(told)
    assert processor_name() == name


def test_where_the_system_tells_nothing_of_its_chip_python_does(monkeypatch, tmp_path):
    monkeypatch.setattr(processors, "TOLD", tmp_path / "none")
    assert processor_name() == (platform.processor() or platform.machine())


@pytest.mark.parametrize("told", ["", None])
def test_where_nothing_is_told_of_the_chip_python_names_its_maker(monkeypatch, tmp_path, told):
    monkeypatch.setattr(processors, "TOLD", tmp_path / "cpuinfo")
    if told is not None:
        (tmp_path / "cpuinfo").write_text(told)
    for said, is_so in [("Intel64 Family 6 Model 167 Stepping 1, GenuineIntel", True), ("", False)]:
        monkeypatch.setattr(platform, "processor", lambda said=said: said)
        assert is_intels() is is_so


@pytest.mark.parametrize(
    ("told", "is_so"),
    [(EPYC.format(n=0, model=2), False), (EPYC.replace("AuthenticAMD", "GenuineIntel"), True),
     (ARM, False)],
)  # fmt: skip
def test_intels_chips_are_told_from_others(monkeypatch, tmp_path, told, is_so):
    monkeypatch.setattr(processors, "TOLD", tmp_path / "cpuinfo")
    monkeypatch.setattr(platform, "processor", lambda: "")
    (tmp_path / "cpuinfo").write_text(told)
    assert is_intels() is is_so
