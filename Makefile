# SPDX-License-Identifier: GPL-2.0-only
# Entry points. "make help" lists them. The DKMS package holds this file with Kbuild, dkms.conf, kmod/ and uapi/
# only: the module targets need nothing else.

KVER ?= $(shell uname -r)
KDIR ?= /lib/modules/$(KVER)/build

VM := selftests/vm
# Empty: "make check" takes all guests, everything else the default one.
GUEST ?=
LAB_GUEST := $(firstword $(GUEST) trixie)

help:
	@echo 'make demo                    install what is needed, build, dump and restore a GPU process in a guest'
	@echo 'make check                   what CI runs; GUEST= SUITE= TEST= narrow it, CANARY=1 proves that it can fail'
	@echo "make lab CMD='...'           run a command in a guest with everything built and loaded (GUEST=$(LAB_GUEST))"
	@echo 'make lab-shell               a console in that guest'
	@echo 'make lab-debug               the suites in a guest with the debug kernel (long)'
	@echo 'make stress                  the long runs, hours: kills, fuzzing, random operations, restores, 4 GiB in 300 MiB; STRESS=kills for one of them'
	@echo 'make bench                   the copy engine against this machine'"'"'s storage: table and JSON'
	@echo 'make fault-matrix            every fault at every point of dump and restore, on every CRIU (hours); GUEST= narrows it'
	@echo 'make bench BENCH=guest       the plugin against upstream'"'"'s, in one guest: ratios'
	@echo 'make bench BENCH=sim         the simulator'"'"'s packets against memcpy() in a guest'
	@echo 'make static                  the static checks alone'
	@echo 'make dkms-check              add, build, install and remove the DKMS package in the build chroot'
	@echo 'make build                   everything, for the guest'
	@echo 'make modules [KDIR=]         gpucr.ko for a kernel, in this directory'
	@echo 'make dkms-install            the module as a DKMS package, in $$(DESTDIR)$$(PREFIX)/src'
	@echo 'make install                 plugin and tool, built here, to DESTDIR= PREFIX='
	@echo 'make clean, make clean-lab   remove build products; remove cached images too'

# --- the module alone

modules:
	$(MAKE) -C $(KDIR) M=$(CURDIR) modules

modules_clean:
	$(MAKE) -C $(KDIR) M=$(CURDIR) clean

# What a DKMS package consists of: these, and nothing else.
DKMS_VERSION = $(shell sed -n 's/^PACKAGE_VERSION="\{0,1\}\([^"]*\)"\{0,1\}$$/\1/p' dkms.conf)
DKMS_DIR = $(DESTDIR)$(PREFIX)/src/gpucr-$(DKMS_VERSION)

dkms-install:
	mkdir -p $(DKMS_DIR)
	cp -r Kbuild Makefile dkms.conf kmod uapi $(DKMS_DIR)/

# --- real machines

PREFIX ?= /usr
O ?= $(CURDIR)/build/host

programs:
	$(MAKE) -C lib O=$(O)
	$(MAKE) -C plugin/amdgpu O=$(O)
	$(MAKE) -C tools/gpucr O=$(O)

install: programs
	$(MAKE) -C plugin/amdgpu O=$(O) DESTDIR=$(DESTDIR) PREFIX=$(PREFIX) install
	$(MAKE) -C tools/gpucr O=$(O) DESTDIR=$(DESTDIR) PREFIX=$(PREFIX) install

# --- the lab

setup:
	@scripts/setup-host.sh

build: setup
	@$(VM)/build.sh $(LAB_GUEST)

lab: build
	@$(if $(CMD),,$(error CMD='...' is missing))$(VM)/boot.sh $(LAB_GUEST) "$$CMD"

lab-shell: build
	@$(VM)/boot.sh $(LAB_GUEST) --shell

lab-debug: setup
	@$(VM)/lab-debug.sh $(LAB_GUEST)

# Does its own setting up, with less to read.
demo:
	@GUEST=$(LAB_GUEST) $(VM)/demo.sh

check: setup
	@$(VM)/check.sh

stress: setup
	@selftests/stress/run.sh $(LAB_GUEST) $(STRESS)

bench: setup
	@$(if $(filter sim,$(BENCH)),selftests/kfdsim/bench.sh $(LAB_GUEST),selftests/bench/$(if $(filter guest,$(BENCH)),guest,run).sh)

fault-matrix: setup
	@selftests/plugin/matrix-run.sh $(GUEST)

static: setup
	@scripts/check-static.sh

dkms-check: setup
	@$(VM)/dkms-check.sh $(LAB_GUEST)

clean:
	rm -rf build

clean-lab: clean
	rm -rf $(or $(GPUCR_CACHE),/var/cache/gpucr)

# The scripts read these; empty means all.
export GUEST SUITE TEST CANARY CMD

.PHONY: help modules modules_clean dkms-install programs install setup build lab lab-shell lab-debug demo check stress bench fault-matrix static dkms-check clean clean-lab
