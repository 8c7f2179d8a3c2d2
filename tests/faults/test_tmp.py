LIMIT = """
import resource, re
size = int(re.search(r"VmSize:\\s+(\\d+)", open("/proc/self/status").read())[1]) * 1024
resource.setrlimit(resource.RLIMIT_AS, (size + {room} * 2**20,) * 2)
print(size >> 20, flush=True)
"""
def test_mem(runs):
    runs.write_corpus(20000)
    assert runs.start("x", "train.tokens=4000000","train.steps=1").end()==0
    for room in (20, 50, 100, 150, 200, 400, 800):
        for rep in range(2):
            c = runs.start(f"a{room}.{rep}", "train.tokens=4000000","train.steps=3", "train.save_every=1", before=LIMIT.format(room=room))
            code = c.end(100)
            print(room, code, "split:", c.said().count("such are split"), c.said().splitlines()[-1][:400])
    assert 0
