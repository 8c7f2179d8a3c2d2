import platform
import subprocess
import sys

import pytest

from regard.train.allocator import keep_freed_memory

ALLOCATE = """
import resource, sys, threading
import torch
from regard.train.allocator import keep_freed_memory

if sys.argv[1] == "keep":
    assert keep_freed_memory()

def faults():
    for _ in range(10):
        torch.ones(16_000_000)  # 64 MB, given back at once
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt

first = faults()
print(faults() - first)
large = []
thread = threading.Thread(target=lambda: large.append(torch.ones(50_000_000)))
thread.start()
thread.join()
assert large[0].sum().item() == 50_000_000
"""


def page_faults(how: str) -> int:
    """How often the system had to hand out a page for tensors that come and go."""
    ran = subprocess.run(
        [sys.executable, "-c", ALLOCATE, how], capture_output=True, text=True, check=True
    )
    return int(ran.stdout)


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="only glibc can be told")
def test_tensors_that_come_and_go_cost_fewer_new_pages():
    assert 2 * page_faults("keep") < page_faults("as it is")


def test_another_c_library_is_left_alone(monkeypatch):
    monkeypatch.setattr(platform, "libc_ver", lambda: ("", ""))
    assert keep_freed_memory() is False
