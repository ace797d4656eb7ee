# The two commands that matter: `make run` and `make test`. Both install what is missing first.
VMLAB = .venv/bin/vmlab
# More workers than CPUs, as most tests wait; tests/conftest.py says what they do not run at the same time.
# They start hundreds of processes, each of which would compile what it imports where Python may not keep it.
# A test that hangs ends after 15 minutes: beside real guests one that computes may take minutes.
TESTS = env -u PYTHONDONTWRITEBYTECODE .venv/bin/python -m pytest -n 6 --dist loadgroup --no-loadscope-reorder --timeout=900

.PHONY: docs deb release test-install setup run test test-all nightly coverage test-fleet test-host test-faults control-cells test-experiments experiments check unit anomalies mutants walk schema screenshots sbom hashes

setup:  ## Debian packages and .venv; does nothing when nothing is missing
	@packaging/setup

run:  ## a database and a mail server on two real guests, cache none against writeback, with an answer
	@packaging/setup run
	@$(VMLAB) run cache-modes
	@printf '%s\n' '' 'Next:' \
	  '  $(VMLAB) run tile            one whole tile: four guests and four workloads, in both cache modes' \
	  '  $(VMLAB) report last -o run.html   this run as a page' \
	  '  $(VMLAB)                     the console: the host live, and this run played back'

test: setup  ## the tests but the exhaustive ones, real guests included; some 15 minutes on two CPUs
	@$(TESTS) -m "not exhaustive" $(PYTEST)

test-all: setup  ## every test but the nightly ones, which is what CI runs
	@$(TESTS) -m "not nightly" $(PYTEST)

nightly: setup  ## the tests that `make test-all` leaves out
	@$(TESTS) -m nightly $(PYTEST)

# The anomaly tests hear every file operation by an audit hook of their process; a thread that begins while the hook
# runs cannot install coverage's tracer (CPython 3.11). So they are left out here.
coverage: setup  ## the lines that no test reached; twice as long as the tests
	@$(TESTS) --ignore=tests/anomaly --cov --cov-report=term $(PYTEST)

test-host: setup  ## the program on a Debian host with systemd, cgroup v2, libvirtd and KVM, all of it emulated; up to 100 minutes
	@.venv/bin/python -m tests.host $(CHECKS)

test-fleet: setup  ## three hypervisors in namespaces of this machine, over SSH, on real guests at smoke size; needs openssh-server; 15 to 25 minutes
	@[ -x /usr/sbin/sshd ] || { echo "test-fleet: install openssh-server (its service need not run)" >&2; exit 3; }
	@VMLAB_FLEET=1 .venv/bin/python -m pytest tests/fleet --timeout=900

test-faults: setup  ## every fault of docs/faults.md, for real, and the page written again; as root, half an hour or more
	@.venv/bin/python -m tests.faults $(FAULTS)

control-cells: setup  ## many short cells on a quiet machine, in which no watch may give an alarm; goes on where it ended; as root, some hours for CELLS=1000
	@.venv/bin/python -m tests.faults.control_cells $(or $(FOLDER),/var/tmp/vmlab-control) --cells $(or $(CELLS),1000) --minutes $(or $(MINUTES),90)

test-experiments: setup  ## every shipped scenario at size smoke on real guests, its published figures beside yours; at most 95 minutes
	@VMLAB_CLAIMS=1 $(TESTS) tests/e2e/test_experiments.py -k known_beforehand
	@.venv/bin/python -m tests.experiments.run_all $(EXPERIMENTS)

experiments: setup  ## claims of shipped scenarios with the repeats that they take, on a quiet machine; goes on where it ended; PLAN=1 tells how long, AGAIN=1 asks the same on another day, HOST=kvm what a host with KVM can answer
	@.venv/bin/python -m tests.experiments.run_claims --minutes $(or $(MINUTES),100) --size $(or $(SIZE),smoke) $(if $(ONCE),--once) $(if $(AGAIN),--again) $(if $(HOST),--host $(HOST)) $(if $(PLAN),--plan) $(EXPERIMENTS)

test-install: setup  ## each way to install, in fresh roots of Debian 12 and 13, by the commands of docs/install.md
	@.venv/bin/python -m tests.install $(CHECKS)

unit: setup  ## the tests of `make test` that boot no guest
	@$(TESTS) -m "not guests and not exhaustive" $(PYTEST)

anomalies: setup  ## every call of a run fails, hangs or is stopped at once, over fakes; an hour or more, not timed yet
	@VMLAB_ANOMALIES=$${VMLAB_ANOMALIES:-all} $(TESTS) tests/anomaly -x

mutants: setup  ## the share of small changes to ten modules that the tests notice, in namespaces of their own; an hour or more
	@packaging/setup add mutants
	@.venv/bin/python -m tests.mutants $(MODULES)

walk: setup  ## every key of every screen on a real terminal, over real guests; some minutes, on a machine that does little else
	@VMLAB_WALK=1 .venv/bin/python -m pytest tests/tui/test_walk.py

docs: setup  ## the documentation as a site, in build/site; a warning is an error
	@NO_MKDOCS_2_WARNING=1 .venv/bin/mkdocs build --strict

deb: setup  ## packages for Debian 12 and 13, in dist/
	@packaging/deb/build $(SUITES)

# uv builds with the versions of constraints-hashed.txt, checked by their digests.
release: setup  ## wheel, sdist, Debian packages, SBOM and digests of this commit, twice to the same bytes, in dist/; tags nothing
	@packaging/setup add hashes
	@packaging/release $(SUITES)

check: setup  ## style, types and import contracts
	@.venv/bin/ruff check .
	@.venv/bin/ruff format --check .
	@.venv/bin/mypy
	@.venv/bin/lint-imports

sbom: setup  ## what the program's environment consists of, as CycloneDX, in build/sbom.json
	@packaging/setup add sbom
	@mkdir -p build && .venv/bin/cyclonedx-py environment --pyproject pyproject.toml --of JSON -o build/sbom.json .venv/bin/python

# The version is that of Debian 12; what only newer ones need has a marker.
hashes: setup  ## constraints-hashed.txt: the versions of constraints.txt, with the digest of each file that an index has of them
	@packaging/setup add hashes
	@printf '%s\n' hatchling editables | .venv/bin/uv pip compile --quiet pyproject.toml - --all-extras --no-strip-extras -c constraints.txt --universal \
	  --python-version 3.11.2 --generate-hashes --annotation-style line --custom-compile-command 'make hashes' \
	  -o constraints-hashed.txt >/dev/null

schema: setup  ## the JSON Schema of scenarios, for editors, what completion in the shell knows, and Grafana's dashboard
	@$(VMLAB) schema > scenarios/schema.json
	@.venv/bin/python packaging/completion.py > .completion && mv .completion vmlab/cli/completion.json
	@.venv/bin/python packaging/dashboard.py > .dashboard && mv .dashboard examples/grafana/vmlab.json

screenshots: setup  ## pictures of the console, from the newest recorded runs of tile and screenshots/copies.yaml, and those of the demo
	@.venv/bin/python -m screenshots.make
	@.venv/bin/python -m screenshots.film
