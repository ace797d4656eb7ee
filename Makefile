# The two commands that matter: `make run` and `make test`. Both install what is missing first.
VMLAB = .venv/bin/vmlab

.PHONY: setup run test check unit schema screenshots

setup:  ## Debian packages and .venv; does nothing when nothing is missing
	@packaging/setup

run: setup  ## one tile of four real guests, cache none against writeback, times side by side
	@$(VMLAB) run tile

test: setup  ## every test, real guests included
	@.venv/bin/python -m pytest

unit: setup  ## the tests that boot no guest
	@.venv/bin/python -m pytest -m "not guests"

check: setup  ## style, types and the walls of the house
	@.venv/bin/ruff check .
	@.venv/bin/ruff format --check .
	@.venv/bin/mypy
	@.venv/bin/lint-imports

schema: setup  ## the JSON Schema of scenarios, for editors
	@$(VMLAB) schema > scenarios/schema.json

screenshots: setup  ## pictures of the console, from the newest recorded tile run
	@.venv/bin/python -m screenshots.make
