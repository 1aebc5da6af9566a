# SPDX-License-Identifier: GPL-2.0-only
# Entry points. "make help" lists them. The DKMS package holds this file with Kbuild, dkms.conf, kmod/ and uapi/
# only: the module targets need nothing else.

KVER ?= $(shell uname -r)
KDIR ?= /lib/modules/$(KVER)/build

GUEST ?= trixie
VM := selftests/vm
LAB_GUEST := $(firstword $(GUEST))

help:
	@echo 'make demo                    install what is needed, build, dump and restore a GPU process in a guest'
	@echo 'make check                   what CI runs; GUEST= SUITE= TEST= narrow it, CANARY=1 proves that it can fail'
	@echo "make lab CMD='...'           run a command in a guest with everything built and loaded (GUEST=$(GUEST))"
	@echo 'make lab-shell               a console in that guest'
	@echo 'make lab-debug               the suites in a guest with the debug kernel (long)'
	@echo 'make static                  the static checks alone'
	@echo 'make dkms-check              add, build, install and remove the DKMS package in the build chroot'
	@echo 'make build                   everything, for the guest'
	@echo 'make modules [KDIR=]         gpucr.ko for a kernel, in this directory'
	@echo 'make clean, make clean-lab   remove build products; remove cached images too'

# --- the module alone

modules:
	$(MAKE) -C $(KDIR) M=$(CURDIR) modules

modules_clean:
	$(MAKE) -C $(KDIR) M=$(CURDIR) clean

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

demo: build
	@GUEST=$(LAB_GUEST) $(VM)/demo.sh

check: setup
	@$(VM)/check.sh

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

.PHONY: help modules modules_clean setup build lab lab-shell lab-debug demo check static dkms-check clean clean-lab
