# make run    build, then serve on 127.0.0.1:4242 with the data in ./basalt-data
# make test   install what the tests need, then the whole gate
# make dist   the binary to install, target/dist/basalt: built by a profile of its own load, a quarter of an hour (docs/operations.md)
# make bench  the side-by-side baseline (benches/README.md)
# make peers  the same beside every peer, each fetched from its package registry (apt, Go, Maven; what is missing is left out)
# make bench-store   the engine beside RocksDB and fjall (benches/store/README.md; needs librocksdb-dev and libclang-dev)
# make differential   random data and requests to a real OpenTSDB and to Basalt (tests/differential/README.md; Java and Maven)
# make fuzz   every fuzz target for SECONDS (60) each; needs cargo-fuzz (fuzz/README.md)
# make truth  the store's rules and 2,000 random histories asked of a real HBase (tests/oracle/README.md)
# make both   OpenTSDB and Basalt on the same tables of a real HBase: UIDs given by both at once, OpenTSDB's fsck over POINTS_BOTH (1000000)
#             points of Basalt's, and random questions to both (tests/oracle/README.md)
# make rounds Basalt over a real HBase under load, 20 rounds of what goes wrong (tests/oracle/README.md)
# make import-check   `basalt import` of a real OpenTSDB's dump of 1 M points (Java and Maven), then of a made one of
#             POINTS (50M) beside /api/put, killed half-way; some 20 GB of disk
# make lab    the full counts: simulation, log cuts, clients for a minute each
# make torture   crashes, faults and damage with their full counts, about an hour (torture/README.md); ARGS="kill9 --cycles 10" for one row

CARGO ?= cargo

.PHONY: run test dist bench peers bench-store differential fuzz truth both rounds import-check lab torture

run:
	$(CARGO) run --release --bin basalt -- serve $(ARGS)

test:
	tests/clients/install
	$(CARGO) xtask ci

dist:
	$(CARGO) xtask dist

bench:
	$(CARGO) build --release --bin basalt
	cd benches && $(CARGO) run --release -- $(if $(VICTORIA_METRICS),--victoria-metrics $(VICTORIA_METRICS)) $(ARGS)

peers:
	$(CARGO) xtask peers $(ARGS)

# The installed RocksDB is linked: building its own takes a quarter of an hour.
ROCKSDB_LIB_DIR ?= /usr/lib/$(shell uname -m)-linux-gnu
ROCKSDB_INCLUDE_DIR ?= /usr/include

bench-store:
	cd benches/store && ROCKSDB_LIB_DIR=$(ROCKSDB_LIB_DIR) ROCKSDB_INCLUDE_DIR=$(ROCKSDB_INCLUDE_DIR) \
		$(CARGO) run --release -- $(ARGS)

differential:
	$(CARGO) xtask differential --count 20000 $(ARGS)

SECONDS ?= 60

# The first target that finds something ends it; its input lies in fuzz/artifacts.
fuzz:
	cd fuzz && export RUSTC_BOOTSTRAP=1 && $(CARGO) fuzz build && for target in $$($(CARGO) fuzz list); do \
		echo "== $$target"; \
		$(CARGO) fuzz run $$target -- -max_total_time=$(SECONDS) -timeout=5 -rss_limit_mb=1024 -verbosity=0 -print_final_stats=1 || exit 1; \
	done

# Java 17 and Maven are needed; without them it says so and succeeds.
truth:
	$(CARGO) xtask truth suite
	$(CARGO) xtask truth shell
	$(CARGO) xtask truth histories --count 2000

POINTS_BOTH ?= 1000000

both:
	$(CARGO) xtask both uids $(ARGS)
	$(CARGO) xtask both points --count $(POINTS_BOTH) $(ARGS)
	$(CARGO) xtask differential --store hbase --count 2100 $(ARGS)

rounds:
	$(CARGO) xtask rounds $(ARGS)

POINTS ?= 50M

import-check:
	$(CARGO) xtask import-check
	$(CARGO) xtask import-check --generate $(POINTS)

# The full counts of what the gate runs a tenth of.
lab:
	tests/clients/install
	BASALT_SIM_HISTORIES=10000 BASALT_WAL_CUT_EVERY=1 BASALT_HISTORIES=100000 $(CARGO) test -p basalt-engine -- --nocapture
	BASALT_CLIENT_SECONDS=65 $(CARGO) test --test it -- --nocapture clients
	BASALT_HOSTILE_MS=1000 $(CARGO) test --release --test it -- --nocapture hostile::hostile hostile::known

# Rows that take root, or a tool that is not there, say `skipped` and why.
torture:
	$(CARGO) build --release --bin basalt
	$(CARGO) build --release -p basalt-torture
	target/release/basalt-torture $(or $(ARGS),all)
