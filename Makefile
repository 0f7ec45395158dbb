# Thin targets; anything clever is Rust. On a fresh Debian or Ubuntu machine with a Rust toolchain:
#   make doctor   installs what is missing, builds, and diagnoses this host
#   make test     everything that decides whether a change is good
#   make lab      every scenario on every kernel, into docs/internals/lab-results.md, and make ledger-truth
#   make ledger-truth the ledger against workloads whose bytes are known, on each kernel, into docs/tracing.md
#   make chain    doctor, predict, apply, verify, confirm and a reboot in guests with systemd, into docs/internals/applying.md
#   make lab-blind the machines of scenarios/blind/*on-kernels.txt on their kernels
#   make validate these runs against the model, into target/agreement.json

# The linker and C library; for the tracer, a compiler of BPF programs and what libbpf is built and linked with.
PACKAGES := gcc libc6-dev clang make pkg-config libelf-dev zlib1g-dev
# For the lab: a machine to run, tools to format its disks and to unpack kernels. systemd has systemd-analyze, which
# scores the units.
LAB_PACKAGES := qemu-system-x86 xfsprogs e2fsprogs xz-utils zstd cpio systemd
TRIPLE := $(shell rustc -vV 2>/dev/null | sed -n 's/^host: //p')
ROOT := $(if $(filter 0,$(shell id -u)),,sudo)

.PHONY: doctor python test build packages lint unit notices deny kills fuzz mutants lab lab-blind ledger-truth advice chain power-cuts apply-pauses validate validation truth storm bench page-check promtool dashboard-check helm-check package-check pages package ring-day vary evidence fleet-truth fleet-pairs fleet-lab wheels rayjob-check

doctor: build
	target/release/floodline doctor || [ $$? = 1 ]

test lab lab-blind ledger-truth advice chain power-cuts apply-pauses storm package-check: PACKAGES += $(LAB_PACKAGES)
ledger-truth: PACKAGES += btrfs-progs
package-check: PACKAGES += rpm cpio
test: packages lint build unit

# One static binary without runtime dependencies. The explicit target keeps the static C library away
# from build scripts and procedural macros, which cannot be linked that way.
build: packages
	RUSTFLAGS="-C target-feature=+crt-static -C link-arg=-Wl,-z,pack-relative-relocs" cargo build --release --locked --package floodline --target $(TRIPLE)
	install -s -D target/$(TRIPLE)/release/floodline target/release/floodline

packages:
	@command -v cargo >/dev/null || { echo "no Rust toolchain: install one with rustup, then run make again"; exit 1; }
	@missing="$$(for p in $(PACKAGES); do dpkg -s $$p >/dev/null 2>&1 || echo $$p; done)"; \
	[ -z "$$missing" ] || { $(ROOT) apt-get update && $(ROOT) apt-get install -y --no-install-recommends $$missing; }

lint:
	cargo fmt --check
	cargo clippy --locked --workspace --all-targets -- -D warnings

# Unit, snapshot, property, program and tidy tests, a short fuzz of every parser, and some incidents on real
# kernels, where machines can be run: the guests' init is the static program that people get.
# A test that cannot run here says so at the end, and fails with FLOODLINE_REQUIRE_ALL=1.
# Virtual machines come last and alone: other tests would take their CPU, and figures of a guest would miss their bounds.
SKIPPED := $(CURDIR)/target/skipped
# What the tests print. A failure's reason is shown again at the end, after all other tests.
UNIT_LOG := $(CURDIR)/target/unit.log
unit: export FLOODLINE_SKIPPED = $(SKIPPED)
unit: export FLOODLINE_GUEST_PROGRAM = $(CURDIR)/target/release/floodline
unit:
	@rm -f $(SKIPPED) $(UNIT_LOG) $(UNIT_LOG).failed; mkdir -p $(dir $(UNIT_LOG))
	@{ cargo test --locked --workspace --no-fail-fast -- --skip ::vm_ || touch $(UNIT_LOG).failed; \
	cargo test --locked --workspace --test program -- ::vm_ || touch $(UNIT_LOG).failed; } 2>&1 | tee $(UNIT_LOG)
	@touch $(SKIPPED); cat $(SKIPPED); echo "$$(wc -l < $(SKIPPED)) tests skipped"
	@[ ! -e $(UNIT_LOG).failed ] || { echo "What failed:"; grep -A3 "panicked at\|^error" $(UNIT_LOG) | cut -c1-2000 | tail -200; exit 1; }

# The Python package: wheel, its tests, its stubs, its examples. Needs python3 with venv; the tools are fetched, pinned.
# PYTHON_FAST=1 leaves out Ray, Dask and the S3 server. PYTHON_PROFILE=release judges the wheel that people get.
python:
	.ci/python

# The wheels that people get, for this machine's architecture, into target/wheels.
wheels:
	packaging/wheels

# The RayJob against the schema of the KubeRay operator, which comes as a Go module. Needs go and PyYAML.
KUBERAY := v1.4.2
rayjob-check:
	cd $$(mktemp -d) && go mod init check 2>/dev/null && \
	crd=$$(go mod download -json github.com/ray-project/kuberay/ray-operator@$(KUBERAY) | sed -n 's/.*"Dir": "\(.*\)".*/\1/p') && \
	python3 $(CURDIR)/python/check_manifest.py $$crd/config/crd/bases/ray.io_rayjobs.yaml \
	$(CURDIR)/packaging/kubernetes/ray-preflight.yaml

# Writes THIRD-PARTY.md, which the tests compare.
notices:
	FLOODLINE_WRITE_NOTICES=1 cargo test --locked --package floodline --test tidy -- notices

# Licences, sources, duplicates and security advisories. The tests check all but the advisories without cargo-deny.
deny:
	@command -v cargo-deny >/dev/null || cargo install --locked cargo-deny
	cargo deny --locked check

# Kills the processes of `floodline apply` at random moments, on folders that imitate a host; the recorder at 200 points,
# `floodline serve` while it writes its ring, the lab 14 times, the tracer 10 times.
KILLS := 1000
kills:
	FLOODLINE_KILLS=$(KILLS) cargo test --locked --package floodline --test program -- tune::no_kill recorder_killed \
	flight::after_each_kill lab_that_is_killed after_a_kill

# Coverage-guided, for FUZZ_MINUTES. The tests run the same targets for a moment each.
fuzz:
	.ci/fuzz

# Changes the kernel arithmetic, the budgets and the decoder, one expression at a time: a test must fail for each.
# Takes hours; MUTANTS_ARGS="--package floodline-kernel" or "--shard 1/8" takes a part.
mutants:
	@command -v cargo-mutants >/dev/null || cargo install --locked cargo-mutants
	cargo mutants --output target $(MUTANTS_ARGS)

# Five kernels: before and after large folios, before and after the fix of inode switching, a new one. What was
# run before is remembered. Exit code 1 says that something is not as expected: the page then says what.
LAB_KERNELS := 5.10,6.1,6.12.43,6.12,7.2
lab: packages build
	@{ sed '/^<!-- measured -->$$/q' docs/internals/lab-results.md; echo; \
	target/release/floodline lab matrix scenarios/*.toml --kernels $(LAB_KERNELS) --format markdown $(LAB_ARGS); \
	} > target/incidents.md || [ $$? = 1 ]
	mv target/incidents.md docs/internals/lab-results.md
	$(MAKE) ledger-truth

# Machines that were written before the rules were looked at, on real kernels: is the right cause first, and is nothing said
# of what is well? One table each. What was run before is remembered.
lab-blind: packages build
	@grep -hv '^#' scenarios/blind/on-kernels.txt scenarios/blind/sixth-on-kernels.txt \
	scenarios/blind/seventh-on-kernels.txt scenarios/blind/eighth-on-kernels.txt \
	scenarios/blind/ninth-on-kernels.txt scenarios/blind/tenth-on-kernels.txt scenarios/blind/eleventh-on-kernels.txt \
	scenarios/blind/twelfth-on-kernels.txt scenarios/blind/thirteenth-on-kernels.txt \
	scenarios/blind/fourteenth-on-kernels.txt scenarios/blind/fifteenth-on-kernels.txt \
	scenarios/blind/sixteenth-on-kernels.txt scenarios/blind/seventeenth-on-kernels.txt \
	scenarios/blind/eighteenth-on-kernels.txt scenarios/blind/nineteenth-on-kernels.txt \
	scenarios/blind/twentieth-on-kernels.txt scenarios/blind/twentyfirst-on-kernels.txt \
	scenarios/blind/twentysecond-on-kernels.txt scenarios/blind/twentythird-on-kernels.txt \
	scenarios/blind/twentyfourth-on-kernels.txt scenarios/blind/twentyfifth-on-kernels.txt \
	scenarios/blind/twentysixth-on-kernels.txt scenarios/blind/twentyseventh-on-kernels.txt \
	scenarios/blind/twentyeighth-on-kernels.txt scenarios/blind/twentyninth-on-kernels.txt \
	scenarios/blind/thirtieth-on-kernels.txt scenarios/blind/thirtyfirst-on-kernels.txt \
	scenarios/blind/thirtysecond-on-kernels.txt scenarios/blind/thirtythird-on-kernels.txt \
	scenarios/blind/thirtyfourth-on-kernels.txt scenarios/blind/thirtyfifth-on-kernels.txt \
	scenarios/blind/thirtysixth-on-kernels.txt scenarios/blind/thirtyseventh-on-kernels.txt \
	scenarios/blind/thirtyeighth-on-kernels.txt scenarios/blind/thirtyninth-on-kernels.txt \
	scenarios/blind/fortieth-on-kernels.txt \
	| { code=0; while read -r file variant kernel; do \
	target/release/floodline lab matrix scenarios/blind/$$file.toml --variants $$variant --kernels $$kernel --trace $(LAB_ARGS) \
	< /dev/null || code=$$?; done; exit $$code; }

# The ledger against workloads whose bytes are known, on every kernel that the tracer is proven on, into docs/tracing.md.
TRUTH_KERNELS := 5.10,6.1,6.12,7.2
ledger-truth: packages build
	FLOODLINE_REQUIRE_VM=1 FLOODLINE_LEDGER_KERNELS=$(TRUTH_KERNELS) FLOODLINE_GUEST_PROGRAM=$(CURDIR)/target/release/floodline \
	FLOODLINE_LEDGER_TRUTH=$(CURDIR)/target/ledger-truth.md \
	cargo test --locked --package floodline --test program -- vm_the_ledger_is_right
	@{ sed '/^<!-- truth -->$$/q' docs/tracing.md; echo; cat target/ledger-truth.md; echo; \
	sed -n '/^<!-- truth ends -->$$/,$$p' docs/tracing.md; } > target/tracing.md
	mv target/tracing.md docs/tracing.md

# Predictions held against the truth, into docs/internals/predict-results.md. On the model: the shipped scenarios, and held-out hosts whose
# recordings are like those of real hosts. Real kernels: what the lab remembers, if it remembers some.
truth:
	FLOODLINE_TRUTH=all cargo test --release -p floodline-twin --test truth -- --nocapture
	cargo build --release --locked -p floodline-dev
	target/release/floodline-dev predict-truth --model > target/model-truth.md
	@{ sed '/^<!-- model -->$$/q' docs/internals/predict-results.md; echo; cat target/model-truth.md; echo; \
	sed -n '/^<!-- model ends -->$$/,$$p' docs/internals/predict-results.md; } > target/predict.md && mv target/predict.md docs/internals/predict-results.md
	@if ls $(VALIDATE)/*.flr > /dev/null 2>&1; then \
	target/release/floodline-dev predict-truth $(VALIDATE) > target/predict-truth.md && \
	{ sed '/^<!-- real -->$$/q' docs/internals/predict-results.md; echo; cat target/predict-truth.md; echo; \
	sed -n '/^<!-- real ends -->$$/,$$p' docs/internals/predict-results.md; } > target/predict.md && \
	mv target/predict.md docs/internals/predict-results.md; \
	else echo 'make truth: $(VALIDATE) has no recordings: floodline lab advise makes some' >&2; fi

# Does what doctor prints help? Each incident and each sick machine of scenarios/blind/on-kernels.txt, as it is and with the
# printed changes, into docs/internals/advice-results.md.
ADVICE_KERNELS := 6.1,6.12.43,6.12,7.2
ADVICE_SCENARIOS := starved-budget dirty-cliff slow-disk-journal overlay-umount inode-switch-storm
advice: packages build
	@{ sed '/^<!-- measured -->$$/q' docs/internals/advice-results.md; echo; \
	.ci/advice target/release/floodline "$(ADVICE_SCENARIOS)" $(ADVICE_KERNELS) $(LAB_ARGS); } > target/advice.md || [ $$? = 1 ]
	@echo >> target/advice.md; sed -n '/^<!-- measured ends -->$$/,$$p' docs/internals/advice-results.md >> target/advice.md
	mv target/advice.md docs/internals/advice-results.md

# What an operator does on a sick host, for each incident, in guests that boot Debian with systemd: the commands that doctor and
# apply print, run as they are printed, and what is in force after a reboot. Takes 45 minutes. What was printed is in
# target/chain. CHAIN takes a part: make chain CHAIN=dirty-cliff=6.12
CHAIN :=
chain: packages build
	.ci/chain target/release/floodline target/chain $(CHAIN) > target/chain.md; code=$$?; cat target/chain.md; \
	[ -n "$(CHAIN)" ] || { { sed '/^<!-- chain -->$$/q' docs/internals/applying.md; echo; cat target/chain.md; echo; \
	sed -n '/^<!-- chain ends -->$$/,$$p' docs/internals/applying.md; } > target/applying.md && \
	mv target/applying.md docs/internals/applying.md; }; exit $$code

# Kills of the processes of a change and cuts of the power, in guests with systemd on each kernel: CUT_KILLS kills between two
# cuts, 1,000 of both on five kernels. A kill takes some 10 s, mostly of waiting, so all kernels run at a time.
CUTS := 8
CUT_KILLS := 24
COMMA := ,
power-cuts: packages build
	POWER_CUTS_JOBS=5 .ci/power-cuts target/release/floodline target/power-cuts $(CUT_KILLS) $(CUTS) $(subst $(COMMA), ,$(LAB_KERNELS))

# How long writers wait while apply lowers the limits, and how soon the guard restores in a storm of writers. On each kernel PAUSE_RUNS
# of the first and RESTORES of the second.
PAUSE_RUNS := 15
RESTORES := 40
apply-pauses: packages build
	.ci/apply-pauses target/release/floodline target/apply-pauses $(PAUSE_RUNS) $(RESTORES) $(subst $(COMMA), ,$(LAB_KERNELS))

# What the lab remembers, or the recordings in VALIDATE, held against the model: every figure into docs/agreement.json, and the
# tables of the documentation from there.
VALIDATE ?= $(or $(XDG_CACHE_HOME),$(HOME)/.cache)/floodline/results
validate:
	cargo run --locked --package floodline-dev -- validate $(VALIDATE) --into docs/agreement.json
	cargo run --locked --package floodline-dev -- publish

# The tables of the documentation from docs/agreement.json alone.
validation:
	cargo run --locked --package floodline-dev -- publish

# The numbers in the reports on the recordings in EVIDENCE, computed again from the samples and the trace.
EVIDENCE ?= $(VALIDATE)
evidence:
	FLOODLINE_EVIDENCE=$(abspath $(EVIDENCE)) cargo test --locked -p floodline-sim --test evidence -- --nocapture recordings

# Serve in a guest whose only disk, with the program and its ring, is flooded. Prints figures (docs/serving.md).
storm: packages build
	.ci/storm target/release/floodline

# Machines beside those of the blind set: other seeds, kernels, memory, disks, lengths and samples. Exit code 1 when a cause changes
# with the seed or with the time between two samples. VARY="--only seventh" takes a part, VARY=recordings/ cuts recordings.
vary:
	cargo run --locked -p floodline-dev -- vary $(VARY)

# A fleet of generated hosts, each run before and after its change: how often the pre-flight is right. Held-out kinds decide.
fleet-truth:
	cargo run --release --locked -p floodline-dev -- fleet-truth $(FLEET_TRUTH)

# The same with pairs of recordings of real kernels: those that the lab remembers, or the folder in FLEET_PAIRS.
FLEET_PAIRS ?= $(or $(XDG_CACHE_HOME),$(HOME)/.cache)/floodline/results
fleet-pairs:
	cargo run --release --locked -p floodline-dev -- fleet-pairs $(FLEET_PAIRS)

# The kinds of this fleet on real kernels, each before and after its change, into docs/internals/fleet-results.md. Takes two hours; a run that
# is recorded in FLEET_LAB is not repeated.
FLEET_LAB := target/fleet-lab
fleet-lab: packages build
	cargo build --release --locked -p floodline-dev
	.ci/fleet-lab target/release/floodline target/release/floodline-dev $(FLEET_LAB) > target/fleet-lab.md || [ $$? = 1 ]
	@{ sed '/^<!-- lab -->$$/q' docs/internals/fleet-results.md; echo; cat target/fleet-lab.md; echo; \
	sed -n '/^<!-- lab ends -->$$/,$$p' docs/internals/fleet-results.md; } > target/fleet.md && mv target/fleet.md docs/internals/fleet-results.md

# A day of samples of 50 and of 500 cgroups through the ring: its size, and how far back it reaches.
ring-day:
	FLOODLINE_RING_DAY=1 cargo test --release --locked -p floodline-serve --lib a_day_is_kept -- --nocapture

bench:
	cargo bench --locked --workspace

# Pages of a scenario, of two and of a sweep in a headless browser: no console message, no request, no complaint of axe-core.
# Needs node, npm and Chromium (packages nodejs, npm and chromium).
PAGES := target/page-check
page-check: build
	mkdir -p $(PAGES) && cp .ci/page-check.mjs $(PAGES) && cd $(PAGES) && rm -f *.flr *.json *.html && \
	npm install --silent --no-save --prefix . puppeteer-core@24 axe-core@4
	cd $(PAGES) && for name in slow-disk-journal dirty-cliff; do \
	../release/floodline simulate ../../scenarios/$$name.toml --every 1s --save $$name.flr > $$name.txt && \
	../release/floodline report $$name.flr -o $$name.html || exit 1; done
	cd $(PAGES) && ../release/floodline report dirty-cliff.flr slow-disk-journal.flr -o two.html && \
	../release/floodline sweep ../../scenarios/dirty-cliff.toml --grid vm.dirty_bytes=64M,256M,1G --format json | \
	../release/floodline report - -o sweep.html && node page-check.mjs *.html

# Manual pages into target/pages: one per command and one per rule.
pages:
	rm -rf target/pages && mkdir -p target/pages
	FLOODLINE_WRITE_PAGES=$(CURDIR)/target/pages cargo test --locked --package floodline --bin floodline pages

# deb, tar.gz, OCI image, chart, SBOM and checksums into target/packages; rpm where rpmbuild is installed.
package: build pages
	packaging/package target/release/floodline target/pages

# What Prometheus itself says of the metrics, the alerts and the queries of the dashboard, and tests of the alerts.
# Needs jq, curl and promtool (Debian: prometheus); without it the package is unpacked below target/.
PROMTOOL := $(CURDIR)/target/promtool
promtool: export PATH := $(PATH):$(PROMTOOL)/deb/usr/bin
promtool: build
	mkdir -p $(PROMTOOL) && cp packaging/prometheus/alerts-test.yml $(PROMTOOL)
	@command -v promtool >/dev/null || { cd $(PROMTOOL) && rm -f prometheus_*.deb && apt-get download -q prometheus && \
	dpkg -x prometheus_*.deb deb; }
	target/release/floodline serve --print-alerts > $(PROMTOOL)/alerts.yml
	promtool check rules $(PROMTOOL)/alerts.yml && promtool test rules $(PROMTOOL)/alerts-test.yml
	target/release/floodline serve --print-dashboard | jq -f packaging/prometheus/queries.jq \
	> $(PROMTOOL)/dashboard.yml && promtool check rules $(PROMTOOL)/dashboard.yml
	@target/release/floodline serve --listen 127.0.0.1:9479 & pid=$$!; sleep 5; \
	curl -sf http://127.0.0.1:9479/metrics | promtool check metrics; code=$$?; kill $$pid; exit $$code

# What Grafana's own types say of the dashboard: each key and value must be one that they know. Needs node and npm.
DASHBOARD := target/dashboard-check
dashboard-check: build
	mkdir -p $(DASHBOARD) && cp .ci/dashboard-check.mjs $(DASHBOARD) && cd $(DASHBOARD) && \
	npm install --silent --no-save --prefix . @grafana/schema@13 typescript@5 && \
	../release/floodline serve --print-dashboard | node dashboard-check.mjs > dashboard.ts && \
	node_modules/.bin/tsc --noEmit --strict --skipLibCheck --module esnext --moduleResolution bundler --target es2022 dashboard.ts

# What Helm says of the chart in each of its variants, and what the schemas of Kubernetes say of all that it makes and of the
# plain manifest. Needs python3 with venv, and helm or Go, which then builds it. kubernetes-validate, which has the schemas, is
# fetched. A helm that Go built assumes Kubernetes 1.20 where no version is named.
CHART := packaging/helm/floodline
HELM := $(CURDIR)/target/helm
SCHEMAS := target/kubernetes-validate
helm-check: export PATH := $(PATH):$(HELM)
helm-check:
	@command -v helm >/dev/null || GOBIN=$(HELM) go install helm.sh/helm/v3/cmd/helm@v3
	@[ -x $(SCHEMAS)/bin/kubernetes-validate ] || { python3 -m venv $(SCHEMAS) && $(SCHEMAS)/bin/pip install --quiet kubernetes-validate; }
	$(SCHEMAS)/bin/kubernetes-validate --strict packaging/kubernetes/floodline.yaml
	helm lint --strict $(CHART)
	for set in tracing.enabled=true prometheus.monitor.enabled=true networkPolicy.enabled=false; do \
	helm lint --strict --set $$set $(CHART) && helm template floodline $(CHART) --kube-version 1.31 --set $$set > target/chart.yaml && \
	$(SCHEMAS)/bin/kubernetes-validate --strict target/chart.yaml || exit 1; done

# Installs the deb in guests that run Debian 12 and 13 with systemd: start, scrape, scores of the units, trace, upgrade, purge.
# Then the rpm in an empty root: files, scriptlets, upgrade, erase.
package-check: package
	.ci/package-check $(RELEASES)
	.ci/rpm-check
