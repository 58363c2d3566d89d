# Two commands do all the set-up: `make run` and `make test`.
PYTHON ?= python3
VENV := .venv
FA4_VENV := .venv-fa4
KERNELS_VENV := .venv-kernels
BIN := $(VENV)/bin
ARGS ?=
# a CPU build of torch is enough to compile the kernels; other versions of torch may pull gigabytes
FA4_TORCH ?= torch==2.13.0
# every engine and worker is a process of its own: importing from source each time would double what the tests take
unexport PYTHONDONTWRITEBYTECODE

.PHONY: run test test-fa4 test-kernels lint bench mutants wheels clean

run: $(VENV)/.run
	$(BIN)/fa4top $(ARGS)

test: $(VENV)/.dev
	$(BIN)/python -m pytest -n 4 --dist worksteal $(ARGS)

test-fa4: $(FA4_VENV)/.fa4
	$(FA4_VENV)/bin/python -m pytest tests/fa4 tests/fork -m fa4 -n 2 --dist loadfile $(ARGS)

test-kernels: $(KERNELS_VENV)/.kernels
	$(KERNELS_VENV)/bin/python -m pytest tests/kernels -m kernels -n 2 $(ARGS)

lint: $(VENV)/.dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

bench: $(VENV)/.dev
	$(BIN)/python benchmarks/decode_rate.py
	$(BIN)/python benchmarks/startup.py
	$(BIN)/python benchmarks/sim_table.py
	$(BIN)/python benchmarks/seek.py
	$(BIN)/python benchmarks/viewer_cost.py
	$(BIN)/python benchmarks/ab_power.py

# every decision broken once, and which tests notice: hours, so not in CI; `mutmut browse` shows what lived
mutants: $(VENV)/.dev
	$(BIN)/python -m pip install -q --group mutants
	$(BIN)/mutmut run --max-children 2
	$(BIN)/python tests/mutants.py

wheels: $(VENV)/.dev
	$(BIN)/python tests/wheels.py

$(VENV)/bin/python:
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 10) and "fa4top needs Python >= 3.10; make PYTHON=/path/to/python3.x")'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install -q --upgrade 'pip>=25.1'

$(VENV)/.run: $(VENV)/bin/python pyproject.toml
	$(BIN)/python -m pip install -q -e .
	touch $@

$(VENV)/.dev: $(VENV)/.run
	$(BIN)/python -m pip install -q --group dev
	touch $@

$(FA4_VENV)/bin/python:
	$(PYTHON) -m venv $(FA4_VENV)
	$(FA4_VENV)/bin/python -m pip install -q --upgrade 'pip>=25.1'

$(FA4_VENV)/.fa4: $(FA4_VENV)/bin/python pyproject.toml
	$(FA4_VENV)/bin/python -m pip install -q '$(FA4_TORCH)'
	$(FA4_VENV)/bin/python -m pip install -q --pre -e '.[fa4,sass]'
	$(FA4_VENV)/bin/python -m pip install -q --group test
	touch $@

$(KERNELS_VENV)/.kernels: pyproject.toml
	$(PYTHON) -m venv $(KERNELS_VENV)
	$(KERNELS_VENV)/bin/python -m pip install -q --upgrade 'pip>=25.1'
	$(KERNELS_VENV)/bin/python -m pip install -q -e '.[cuda13,sass]'
	$(KERNELS_VENV)/bin/python -m pip install -q --group test --group kernels
	touch $@

clean:
	rm -rf $(VENV) $(FA4_VENV) $(KERNELS_VENV) dist
