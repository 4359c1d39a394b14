# make run    build, then serve on 127.0.0.1:4242 with the data in ./basalt-data
# make test   install what the tests need, then the whole gate
# make bench  the side-by-side baseline (benches/README.md)
# make differential   random data and requests to a real OpenTSDB and to Basalt (tests/differential/README.md; Java and Maven)
# make lab    the full counts: kill9, simulation, log cuts, clients for a minute each

CARGO ?= cargo

.PHONY: run test bench differential lab

run:
	$(CARGO) run --release --bin basalt -- serve $(ARGS)

test:
	tests/clients/install
	$(CARGO) xtask ci

bench:
	$(CARGO) build --release --bin basalt
	cd benches && $(CARGO) run --release -- $(if $(VICTORIA_METRICS),--victoria-metrics $(VICTORIA_METRICS)) $(ARGS)

differential:
	$(CARGO) xtask differential --count 20000 $(ARGS)

# The full counts of what the gate runs a tenth of.
lab:
	tests/clients/install
	BASALT_SIM_HISTORIES=10000 BASALT_WAL_CUT_EVERY=1 BASALT_HISTORIES=10000 $(CARGO) test -p basalt-engine -- --nocapture
	BASALT_KILL9_ROUNDS=200 BASALT_CLIENT_SECONDS=65 $(CARGO) test --test it -- --nocapture kill9 clients
