# Thin targets; anything clever is Rust. On a fresh Debian or Ubuntu machine with a Rust toolchain:
#   make doctor   installs what is missing, builds, and diagnoses this host
#   make test     everything that decides whether a change is good

PACKAGES := gcc libc6-dev
TRIPLE := $(shell rustc -vV 2>/dev/null | sed -n 's/^host: //p')
ROOT := $(if $(filter 0,$(shell id -u)),,sudo)

.PHONY: doctor test build packages lint unit bench

doctor: build
	target/release/floodline doctor

test: packages lint unit

# One static binary without runtime dependencies. The explicit target keeps the static C library away
# from build scripts and procedural macros, which cannot be linked that way.
build: packages
	RUSTFLAGS="-C target-feature=+crt-static" cargo build --release --locked --package floodline --target $(TRIPLE)
	install -D target/$(TRIPLE)/release/floodline target/release/floodline

packages:
	@command -v cargo >/dev/null || { echo "no Rust toolchain: install one with rustup, then run make again"; exit 1; }
	@missing="$$(for p in $(PACKAGES); do dpkg -s $$p >/dev/null 2>&1 || echo $$p; done)"; \
	[ -z "$$missing" ] || { $(ROOT) apt-get update && $(ROOT) apt-get install -y --no-install-recommends $$missing; }

lint:
	cargo fmt --check
	cargo clippy --locked --workspace --all-targets -- -D warnings

# Unit, snapshot, property, program and tidy tests, and a short fuzz of every parser.
unit:
	cargo test --locked --workspace --no-fail-fast

bench:
	cargo bench --locked --workspace
