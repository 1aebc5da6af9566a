// SPDX-License-Identifier: GPL-2.0
/*
 * PCI functions made of software: one root bus per GPU in a domain of their
 * own, so that each GPU has a bus number as real ones do. The driver that
 * binds to them is ours, by the name "amdgpu"; a second driver of that name
 * cannot be registered, and ours refuses functions that are not on our buses.
 */
#include <linux/pci.h>
#include <linux/slab.h>
#include "kfdsim_drm.h"

#define DOMAIN		1
#define FIRST_BUS	1

/**
 * struct sim_bus - a root bus and the function on it
 * @sysdata: first, as the architecture expects; domain and NUMA node
 * @index: of the GPU
 * @bus: NULL before it exists
 * @busn: the bus number, as a resource
 * @cfg: configuration space of function 0 of device 0; the PCI core asks for
 *	aligned parts only
 */
struct sim_bus {
	struct pci_sysdata sysdata;
	unsigned int index;
	struct pci_bus *bus;
	struct resource busn;
	union {
		u8 byte[PCI_CFG_SPACE_SIZE];
		__le16 word[PCI_CFG_SPACE_SIZE / 2];
		__le32 dword[PCI_CFG_SPACE_SIZE / 4];
	} cfg;
};

static struct sim_bus *buses[KFDSIM_MAX_GPUS];

static struct sim_bus *to_sim_bus(struct pci_bus *bus)
{
	return container_of((struct pci_sysdata *)bus->sysdata, struct sim_bus,
			    sysdata);
}

static bool cfg_valid(unsigned int devfn, int where, int size)
{
	return !devfn && where >= 0 && where + size <= PCI_CFG_SPACE_SIZE;
}

static int cfg_read(struct pci_bus *bus, unsigned int devfn, int where, int size,
		    u32 *val)
{
	struct sim_bus *sb = to_sim_bus(bus);

	if (!cfg_valid(devfn, where, size)) {
		*val = ~0;
		return devfn ? PCIBIOS_DEVICE_NOT_FOUND :
			       PCIBIOS_BAD_REGISTER_NUMBER;
	}
	switch (size) {
	case 1:
		*val = sb->cfg.byte[where];
		break;
	case 2:
		*val = le16_to_cpu(sb->cfg.word[where / 2]);
		break;
	default:
		*val = le32_to_cpu(sb->cfg.dword[where / 4]);
		break;
	}
	return PCIBIOS_SUCCESSFUL;
}

/* Only the command register and the interrupt line keep what is written. */
static int cfg_write(struct pci_bus *bus, unsigned int devfn, int where, int size,
		     u32 val)
{
	struct sim_bus *sb = to_sim_bus(bus);

	if (!cfg_valid(devfn, where, size))
		return PCIBIOS_DEVICE_NOT_FOUND;
	if (where == PCI_COMMAND)
		sb->cfg.word[PCI_COMMAND / 2] =
			cpu_to_le16(val & (PCI_COMMAND_MEMORY | PCI_COMMAND_MASTER |
					   PCI_COMMAND_INTX_DISABLE));
	else if (where == PCI_INTERRUPT_LINE)
		sb->cfg.byte[where] = val;
	return PCIBIOS_SUCCESSFUL;
}

static struct pci_ops sim_ops = {
	.read = cfg_read,
	.write = cfg_write,
};

static void cfg_init(struct sim_bus *sb, u16 device_id, u8 revision)
{
	sb->cfg.word[PCI_VENDOR_ID / 2] = cpu_to_le16(KFDSIM_PCI_VENDOR);
	sb->cfg.word[PCI_DEVICE_ID / 2] = cpu_to_le16(device_id);
	sb->cfg.dword[PCI_CLASS_REVISION / 4] =
		cpu_to_le32(KFDSIM_PCI_CLASS << 8 | revision);
	sb->cfg.byte[PCI_HEADER_TYPE] = PCI_HEADER_TYPE_NORMAL;
	sb->cfg.word[PCI_SUBSYSTEM_VENDOR_ID / 2] = cpu_to_le16(KFDSIM_PCI_VENDOR);
	sb->cfg.word[PCI_SUBSYSTEM_ID / 2] = cpu_to_le16(KFDSIM_PCI_SUBSYSTEM);
}

int kfdsim_pci_index(struct pci_dev *pdev)
{
	return pdev->bus->ops == &sim_ops ? (int)to_sim_bus(pdev->bus)->index : -1;
}

/**
 * kfdsim_pci_add() - make a bus and its function, and have our driver bind
 * @index: of the GPU
 * @device_id: PCI device id
 * @revision: PCI revision
 *
 * Return: 0 or a negative errno. Whether the driver bound is for the caller to
 * see. Undone by kfdsim_pci_remove().
 */
int kfdsim_pci_add(unsigned int index, u16 device_id, u8 revision)
{
	struct sim_bus *sb = kzalloc(sizeof(*sb), GFP_KERNEL);
	LIST_HEAD(resources);

	if (!sb)
		return -ENOMEM;
	sb->sysdata.domain = DOMAIN;
	sb->sysdata.node = NUMA_NO_NODE;
	sb->index = index;
	sb->busn.name = "kfdsim";
	sb->busn.flags = IORESOURCE_BUS;
	sb->busn.start = FIRST_BUS + index;
	sb->busn.end = sb->busn.start;
	cfg_init(sb, device_id, revision);
	pci_add_resource(&resources, &sb->busn);
	pci_lock_rescan_remove();
	sb->bus = pci_create_root_bus(NULL, FIRST_BUS + index, &sim_ops,
				      &sb->sysdata, &resources);
	if (!sb->bus) {
		pci_unlock_rescan_remove();
		pci_free_resource_list(&resources);
		kfree(sb);
		return -ENOMEM;
	}
	pci_scan_child_bus(sb->bus);
	pci_bus_add_devices(sb->bus);
	pci_unlock_rescan_remove();
	buses[index] = sb;
	return 0;
}

void kfdsim_pci_remove(unsigned int index)
{
	struct sim_bus *sb = buses[index];

	if (!sb)
		return;
	pci_lock_rescan_remove();
	pci_stop_root_bus(sb->bus);
	pci_remove_root_bus(sb->bus);
	pci_unlock_rescan_remove();
	buses[index] = NULL;
	kfree(sb);
}

u32 kfdsim_gpu_location(const struct kfdsim_gpu *gpu)
{
	return (FIRST_BUS + gpu->index) << 8;
}

u32 kfdsim_gpu_domain(const struct kfdsim_gpu *gpu)
{
	return DOMAIN;
}
