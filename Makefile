# Everything a person or a CI machine does with Skep. The work is in CMakePresets.json and scripts/.

PORT ?= 6379
GIB ?= 1
SECONDS ?= 60
ROUNDS ?= 500
SEEDS ?= 100

.DEFAULT_GOAL := help
.PHONY: help run pool build test suites bench bench-ordered bench-durable bench-net fuzz sim soak faults crash mutants format lint clean

help:
	@echo "make run [PORT=6379]      install what is missing, build, start skep-server"
	@echo "make pool [PORT=6379] [GIB=1]    a pool of memory on this machine, with ZooKeeper and a skep-server"
	@echo "make build                install what is missing, build build/release/bin/"
	@echo "make test [TESTS=regex]   build optimised and with sanitizers, run all tests"
	@echo "make suites               the test suites of Redis's clients, against Skep and against Redis"
	@echo "make bench [RECORDS=n]    this machine's limits, then YCSB A to F"
	@echo "make bench-ordered [RECORDS=n] [STEPS=...]    every figure of docs/ordered.md"
	@echo "make bench-durable [STEPS=...]    what durability costs, and how fast a store recovers"
	@echo "make bench-net [RECORDS=n]    Skep, Redis and memcached over the network, side by side"
	@echo "make fuzz [SECONDS=60]    run every fuzzer for so long"
	@echo "make sim [SEEDS=100] [SEED=first]    so many simulations, each wholly given by its seed"
	@echo "make soak [SECONDS=60]    threads and clients on one store for so long, every answer checked"
	@echo "make faults [ROUNDS=500]  every call of the file system, every allocation of an engine fails once"
	@echo "make crash [ROUNDS=500]   kill a server, and take its power, so often; what is recovered is checked"
	@echo "make mutants [ONLY=regex] break one mechanism at a time; the test that a page names must fail"
	@echo "make format               format the code with clang-format"
	@echo "make lint                 clang-format, clang-tidy and the tidy test; changes nothing"
	@echo "make clean                remove build/"

run:
	@scripts/install-packages build run
	@scripts/build release skep-server skep-cli
	@echo "Talk to it from another terminal: build/release/bin/skep-cli -p $(PORT), or redis-cli    (Ctrl-C here ends the server)"
	@exec build/release/bin/skep-server --bind 127.0.0.1 --port $(PORT)

pool:
	@scripts/install-packages build run pool
	@scripts/build release skep-server skep-pool skep_shared skep_zookeeper_module skep_ofi_module
	@scripts/pool $(PORT) $(GIB)

build:
	@scripts/install-packages build
	@scripts/build release

test:
	@scripts/install-packages build test peers
	@scripts/test $(if $(TESTS),-R '$(TESTS)')

suites:
	@scripts/install-packages build suites
	@scripts/build release skep-server
	@python3 tests/suites/suites.py build/release/bin

bench:
	@scripts/install-packages build
	@scripts/build release skep-bench
	@scripts/bench $(RECORDS)

# RECORDS, STEPS and more: the beginning of the script has them. ITEMS is another name for RECORDS.
bench-ordered:
	@scripts/install-packages build peers
	@scripts/build release skep-bench
	@RECORDS='$(or $(RECORDS),$(ITEMS))' scripts/bench-ordered

bench-durable:
	@scripts/install-packages build run
	@scripts/build release skep-bench skep-server
	@bench/durable.py $(if $(STEPS),--steps $(STEPS)) $(if $(RECORDS),--records $(RECORDS))

bench-net:
	@scripts/install-packages build run peers
	@scripts/build release skep-bench skep-server
	@bench/net/servers.py --bin build/release/bin $(if $(RECORDS),--records $(RECORDS))

fuzz:
	@scripts/install-packages build fuzz
	@scripts/fuzz $(SECONDS)

sim:
	@scripts/install-packages build test
	@scripts/sim $(SEEDS) $(SEED)

soak:
	@scripts/install-packages build test
	@scripts/soak $(SECONDS)

faults:
	@scripts/install-packages build test
	@scripts/faults $(ROUNDS)

crash:
	@scripts/install-packages build test
	@scripts/crash $(ROUNDS)

mutants:
	@scripts/install-packages build test peers
	@tests/mutants/mutants.py . $(if $(ONLY),--only '$(ONLY)')
	@src/netindex/p4/p4_mutants.py

format:
	@scripts/install-packages lint
	@scripts/format

lint:
	@scripts/install-packages build lint
	@scripts/lint

clean:
	rm -rf build
