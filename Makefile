# `make test` and `make demo` need Python >= 3.11 and, the first time, a network. Nothing else.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
READY  := $(VENV)/.ready

# The Tatoeba Challenge, whose sentences `make bench` translates.
DATA ?= data/tatoeba-challenge-zh-en

# The unit tests once more, with every annotated shape checked at every call; few examples show it.
SHAPES := REGARD_EXAMPLES=4 $(BIN)/pytest -q -n 2 --jaxtyping-packages=regard,beartype.beartype \
          tests/attention tests/model tests/reference tests/data/test_batch.py tests/data/test_feed.py

.PHONY: test demo check shapes faults soak learn mutants bench docs wheel clean

test: $(READY)  ## everything: format, lint, types, imports, sizes, documents, then all tests
	tools/check
	$(SHAPES)
	$(BIN)/pytest -q -n 2

demo: $(READY)  ## the main job, on show
	$(BIN)/regard demo

check: $(READY)  ## format, lint, types, imports, sizes, documents
	tools/check

shapes: $(READY)  ## the unit tests with every annotated shape checked
	$(SHAPES)

faults: $(READY)  ## kills, signals, full disks, flipped bytes: the tests of faults, many times over
	REGARD_FAULTS=long $(BIN)/pytest -q -n 2 tests/faults tests/train/test_parallel.py --ignore=tests/faults/test_serving_load.py
	REGARD_FAULTS=long $(BIN)/pytest -q tests/faults/test_serving_load.py  # which measures, and wants the machine to itself

soak: $(READY)  ## the server under mixed load for half an hour: memory, files and threads stay
	REGARD_SOAK=30 $(BIN)/pytest -q tests/faults/test_serving_load.py -k nothing_grows

learn: $(READY)  ## copy, reverse and sort by every kind of attention, from seeds of the day
	$(BIN)/python tools/learn.py

mutants: $(READY)  ## plant one-line faults and see whether the tests notice
	$(BIN)/python tools/mutants.py

bench: $(READY)  ## the numbers of a CPU, on this machine with nothing else to do: speed, beside other toolkits
	$(BIN)/python benchmarks/bench_numerals.py
	$(BIN)/python benchmarks/bench_train_cpu.py
	if [ -e $(DATA)/test_hans.zh.gz ]; then \
	    $(BIN)/python benchmarks/bench_translate_cpu.py --data $(DATA) && \
	    $(BIN)/python benchmarks/bench_serve.py --data $(DATA); \
	else \
	    echo "bench: no test_hans.zh.gz in $(DATA), so translating and serving are left out; name another folder with: make bench DATA=..."; \
	fi

docs: $(READY)  ## the guide as a site, both languages, into build/site; a warning is a fault
	$(BIN)/python tools/guide_site.py

wheel: $(READY)
	$(BIN)/python -m hatchling build

clean:
	rm -rf $(VENV) dist build .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache

# One virtual environment for all of it, made once, remade only when its recipe changes.
$(READY): pyproject.toml constraints.txt
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "error: regard needs Python 3.11 or newer, this is " + sys.version.split()[0] + "; name another with: make PYTHON=python3.12 ...")'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt hatchling editables setuptools
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt --no-build-isolation -e '.[dev]'
	touch $@
