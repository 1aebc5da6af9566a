// SPDX-License-Identifier: GPL-2.0
/*
 * PCI functions made of software: a root bus for each board in a domain of
 * their own, so that each has a bus number as real ones do, and on it a function
 * for each partition. The driver that binds to them is ours, by the name
 * "amdgpu"; a second driver of that name cannot be registered, and ours refuses
 * functions that are not on our buses.
 */
#include <linux/list.h>
#include <linux/pci.h>
#include <linux/slab.h>
#include "kfdsim_drm.h"

#define SLOTS		8

/**
 * struct sim_slot - a function
 * @pdev: NULL where there is none
 * @used: taken
 * @devfn: its place on the bus
 * @index: of the GPU
 * @cfg: configuration space; the PCI core asks for aligned parts only
 */
struct sim_slot {
	struct pci_dev *pdev;
	bool used;
	u8 devfn;
	unsigned int index;
	union {
		u8 byte[PCI_CFG_SPACE_SIZE];
		__le16 word[PCI_CFG_SPACE_SIZE / 2];
		__le32 dword[PCI_CFG_SPACE_SIZE / 4];
	} cfg;
};

/**
 * struct sim_bus - a root bus and the functions on it
 * @sysdata: first, as the architecture expects; domain and NUMA node
 * @node: in @buses
 * @bridge: of @bus; ours, since it outlives @bus
 * @bus: the PCI core's
 * @busn: the bus number, as a resource
 * @slots: functions
 */
struct sim_bus {
	struct pci_sysdata sysdata;
	struct list_head node;
	struct pci_host_bridge *bridge;
	struct pci_bus *bus;
	struct resource busn;
	struct sim_slot slots[SLOTS];
};

/* Changed by init and exit only. */
static LIST_HEAD(buses);

static struct sim_bus *to_sim_bus(struct pci_bus *bus)
{
	return container_of((struct pci_sysdata *)bus->sysdata, struct sim_bus,
			    sysdata);
}

static struct sim_slot *slot_at(struct pci_bus *bus, unsigned int devfn)
{
	struct sim_bus *sb = to_sim_bus(bus);
	unsigned int i;

	for (i = 0; i < SLOTS; i++)
		if (sb->slots[i].used && sb->slots[i].devfn == devfn)
			return &sb->slots[i];
	return NULL;
}

static bool cfg_valid(int where, int size)
{
	return where >= 0 && where + size <= PCI_CFG_SPACE_SIZE;
}

static int cfg_read(struct pci_bus *bus, unsigned int devfn, int where, int size,
		    u32 *val)
{
	struct sim_slot *slot = slot_at(bus, devfn);

	if (!slot || !cfg_valid(where, size)) {
		*val = ~0;
		return slot ? PCIBIOS_BAD_REGISTER_NUMBER :
			      PCIBIOS_DEVICE_NOT_FOUND;
	}
	switch (size) {
	case 1:
		*val = slot->cfg.byte[where];
		break;
	case 2:
		*val = le16_to_cpu(slot->cfg.word[where / 2]);
		break;
	default:
		*val = le32_to_cpu(slot->cfg.dword[where / 4]);
		break;
	}
	return PCIBIOS_SUCCESSFUL;
}

/* Only the command register and the interrupt line keep what is written. */
static int cfg_write(struct pci_bus *bus, unsigned int devfn, int where, int size,
		     u32 val)
{
	struct sim_slot *slot = slot_at(bus, devfn);

	if (!slot || !cfg_valid(where, size))
		return PCIBIOS_DEVICE_NOT_FOUND;
	if (where == PCI_COMMAND)
		slot->cfg.word[PCI_COMMAND / 2] =
			cpu_to_le16(val & (PCI_COMMAND_MEMORY | PCI_COMMAND_MASTER |
					   PCI_COMMAND_INTX_DISABLE));
	else if (where == PCI_INTERRUPT_LINE)
		slot->cfg.byte[where] = val;
	return PCIBIOS_SUCCESSFUL;
}

static struct pci_ops sim_ops = {
	.read = cfg_read,
	.write = cfg_write,
};

static void cfg_init(struct sim_slot *slot, const struct kfdsim_model *m)
{
	memset(&slot->cfg, 0, sizeof(slot->cfg));
	slot->cfg.word[PCI_VENDOR_ID / 2] = cpu_to_le16(KFDSIM_PCI_VENDOR);
	slot->cfg.word[PCI_DEVICE_ID / 2] = cpu_to_le16(m->device_id);
	slot->cfg.dword[PCI_CLASS_REVISION / 4] =
		cpu_to_le32(KFDSIM_PCI_CLASS << 8 | m->revision);
	slot->cfg.byte[PCI_HEADER_TYPE] = PCI_HEADER_TYPE_NORMAL;
	slot->cfg.word[PCI_SUBSYSTEM_VENDOR_ID / 2] = cpu_to_le16(KFDSIM_PCI_VENDOR);
	slot->cfg.word[PCI_SUBSYSTEM_ID / 2] = cpu_to_le16(KFDSIM_PCI_SUBSYSTEM);
}

/** kfdsim_pci_index() - index of the GPU; -1: a function that is not ours */
int kfdsim_pci_index(struct pci_dev *pdev)
{
	struct sim_slot *slot;

	if (pdev->bus->ops != &sim_ops)
		return -1;
	slot = slot_at(pdev->bus, pdev->devfn);
	return slot ? (int)slot->index : -1;
}

static struct sim_bus *bus_find(u16 domain, u8 busn)
{
	struct sim_bus *sb;

	list_for_each_entry(sb, &buses, node)
		if (sb->sysdata.domain == domain && sb->busn.start == busn)
			return sb;
	return NULL;
}

/*
 * With no functions yet. Under the PCI core's rescan lock. Not by
 * pci_create_root_bus(): nobody puts the bridge that it makes.
 */
static struct sim_bus *bus_create(u16 domain, u8 busn)
{
	struct sim_bus *sb = kzalloc(sizeof(*sb), GFP_KERNEL);
	struct pci_host_bridge *bridge = pci_alloc_host_bridge(0);

	if (!sb || !bridge)
		goto err_free;
	sb->sysdata.domain = domain;
	sb->sysdata.node = NUMA_NO_NODE;
	sb->busn.name = "kfdsim";
	sb->busn.flags = IORESOURCE_BUS;
	sb->busn.start = busn;
	sb->busn.end = busn;
	pci_add_resource(&bridge->windows, &sb->busn);
	bridge->sysdata = &sb->sysdata;
	bridge->busnr = busn;
	bridge->ops = &sim_ops;
	if (pci_scan_root_bus_bridge(bridge))
		goto err_free;
	sb->bridge = bridge;
	sb->bus = bridge->bus;
	list_add_tail(&sb->node, &buses);
	return sb;

err_free:
	if (bridge)
		pci_free_host_bridge(bridge);
	kfree(sb);
	return NULL;
}

static void bus_remove_if_empty(struct sim_bus *sb)
{
	unsigned int i;

	for (i = 0; i < SLOTS; i++)
		if (sb->slots[i].used)
			return;
	list_del(&sb->node);
	pci_stop_root_bus(sb->bus);
	pci_remove_root_bus(sb->bus);
	pci_free_host_bridge(sb->bridge);
	kfree(sb);
}

/* Captured machines may say the same place twice: the next free function. */
static struct sim_slot *slot_take(struct sim_bus *sb, u8 devfn)
{
	unsigned int i;

	while (slot_at(sb->bus, devfn))
		devfn++;
	for (i = 0; i < SLOTS; i++) {
		if (sb->slots[i].used)
			continue;
		sb->slots[i].used = true;
		sb->slots[i].devfn = devfn;
		return &sb->slots[i];
	}
	return NULL;
}

static int function_add(struct sim_bus *sb, unsigned int index, u8 devfn)
{
	struct sim_slot *slot = slot_take(sb, devfn);

	if (!slot)
		return -ENOSPC;
	slot->index = index;
	cfg_init(slot, kfdsim_machine_spec(index)->model);
	slot->pdev = pci_scan_single_device(sb->bus, slot->devfn);
	if (!slot->pdev) {
		slot->used = false;
		return -ENODEV;
	}
	pci_bus_add_devices(sb->bus);
	return 0;
}

/**
 * kfdsim_pci_add() - make a function, and its bus, and have our driver bind
 * @index: of the GPU
 *
 * Return: 0 or a negative errno. Whether the driver bound is for the caller to
 * see. Undone by kfdsim_pci_remove().
 */
int kfdsim_pci_add(unsigned int index)
{
	const struct kfdsim_spec *spec = kfdsim_machine_spec(index);
	struct sim_bus *sb;
	int ret = -ENOMEM;

	pci_lock_rescan_remove();
	sb = bus_find(spec->domain, spec->bus);
	if (!sb)
		sb = bus_create(spec->domain, spec->bus);
	if (sb) {
		ret = function_add(sb, index, spec->devfn);
		if (ret)
			bus_remove_if_empty(sb);
	}
	pci_unlock_rescan_remove();
	return ret;
}

static struct sim_slot *slot_of(unsigned int index, struct sim_bus **bus)
{
	struct sim_bus *sb;
	unsigned int i;

	list_for_each_entry(sb, &buses, node)
		for (i = 0; i < SLOTS; i++)
			if (sb->slots[i].used && sb->slots[i].index == index) {
				*bus = sb;
				return &sb->slots[i];
			}
	return NULL;
}

void kfdsim_pci_remove(unsigned int index)
{
	struct sim_bus *sb;
	struct sim_slot *slot = slot_of(index, &sb);

	if (!slot)
		return;
	pci_lock_rescan_remove();
	pci_stop_and_remove_bus_device(slot->pdev);
	slot->used = false;
	slot->pdev = NULL;
	bus_remove_if_empty(sb);
	pci_unlock_rescan_remove();
}

u32 kfdsim_gpu_location(const struct kfdsim_gpu *gpu)
{
	struct sim_bus *sb;
	struct sim_slot *slot = slot_of(gpu->index, &sb);

	return slot ? sb->busn.start << 8 | slot->devfn : 0;
}

u32 kfdsim_gpu_domain(const struct kfdsim_gpu *gpu)
{
	return kfdsim_machine_spec(gpu->index)->domain;
}
